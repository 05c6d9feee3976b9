"""A real Chromium without a window, told what to do over its own protocol; no driver in between.

It comes from the system's packages (`chromium`). Pictures go to `build/screenshots/`, for people to look at.
"""

import asyncio
import base64
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.tree import ROOT

PICTURES = ROOT / "build" / "screenshots"
PROGRAM = shutil.which("chromium")
NEEDS_CHROMIUM = pytest.mark.skipif(
    PROGRAM is None and "CI" not in os.environ, reason="there is no chromium here; where tests count it is installed"
)
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class Tab:
    """One page that is shown."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser = browser
        self._session = session

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        return await self._browser.call(method, self._session, **parameters)

    async def go(self, url: str) -> None:
        """Shows a page, and waits until it has loaded."""
        await self.call("Page.navigate", url=url)
        await self.until(f"location.href === {url!r} && document.readyState === 'complete'")

    async def evaluate(self, script: str) -> Any:
        """What the script says; a promise is waited for."""
        told = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def until(self, condition: str) -> None:
        """Waits until the script says true; the test's time limit ends it otherwise."""
        while not await self._now(condition):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def _now(self, condition: str) -> bool:
        told = await self.call("Runtime.evaluate", expression=f"Boolean({condition})", returnByValue=True)
        return bool(told["result"].get("value"))

    async def text(self, selector: str = "body") -> str:
        """What a person reads there."""
        return str(await self.evaluate(f"document.querySelector({selector!r}).innerText"))

    async def resize(self, width: int, height: int, *, dark: bool = True, phone: bool = False) -> None:
        """The size of the window, and the colours that the system has."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, name: str) -> Path:
        """Keeps what is seen as `build/screenshots/NAME.png`."""
        told = await self.call("Page.captureScreenshot", format="png")
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        path.write_bytes(base64.b64decode(told["data"]))
        return path


class Browser:
    """A running browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                self._waiting.pop(told["id"]).set_result(told)

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        whom = {} if session is None else {"sessionId": session}
        await self._socket.send_json({"id": number, "method": method, "params": parameters, **whom})
        told = await self._waiting[number]
        assert "error" not in told, told["error"]
        result: dict[str, Any] = told["result"]
        return result

    async def tab(self, url: str = "about:blank") -> Tab:
        """A new page of a desktop's size, in dark colours."""
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        tab = Tab(self, attached["sessionId"])
        await tab.call("Page.enable")
        await tab.resize(1280, 900)
        await tab.go(url)
        return tab


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Browser]:
    """A browser that keeps its files in `profile`, ended with the test."""
    assert PROGRAM is not None, "install the package chromium"
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *OPTIONS, f"--user-data-dir={profile}", stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )
    try:
        assert process.stderr is not None
        async for line in process.stderr:
            if line.startswith(b"DevTools listening on "):
                break
        draining = asyncio.create_task(process.stderr.read())
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(line.split()[-1].decode(), max_msg_size=0) as socket,
        ):
            found = Browser(socket)
            yield found
            await found.call("Browser.close")
            await found._listening
        await draining
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
