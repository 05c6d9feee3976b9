"""A real Chromium without a window, controlled over its own protocol without a driver.

Chromium comes from the system's packages. Screenshots go to `build/screenshots/` for people to look at.
"""

import asyncio
import base64
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.left_out import needs
from tests.support.tree import ROOT

PICTURES = ROOT / "build" / "screenshots"
PROGRAM = shutil.which("chromium")
NEEDS_CHROMIUM = needs("chromium")
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


LEFT = ("Inspected target navigated or closed", "Execution context was destroyed")
"""Errors of a script whose page is left before it has answered."""


class CommandError(AssertionError):
    """A command of the protocol that failed, in the words of the browser."""


class Tab:
    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser = browser
        self._session = session

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command of the protocol; return its result."""
        return await self._browser.call(method, self._session, **parameters)

    async def go(self, url: str) -> None:
        """Open an address and wait until the page has loaded."""
        await self.call("Page.navigate", url=url)
        await self.until(f"location.href === {url!r} && document.readyState === 'complete'")

    async def evaluate(self, script: str) -> Any:
        """Return the value of a script; wait for a promise. A script that leaves the page may have no value: None."""
        answer = await self._run(expression=script, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until a script's value is true. The test's time limit is the only limit."""
        while not await self._now(condition):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def _now(self, condition: str) -> bool:
        answer = await self._run(expression=f"Boolean({condition})")
        return bool(answer["result"].get("value"))

    async def _run(self, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a script; one without a value if the page is left meanwhile."""
        try:
            return await self.call("Runtime.evaluate", returnByValue=True, **parameters)
        except CommandError as error:
            if not str(error).startswith(LEFT):
                raise
            return {"result": {}}

    async def text(self, selector: str = "body") -> str:
        return str(await self.evaluate(f"document.querySelector({selector!r}).innerText"))

    async def resize(self, width: int, height: int, *, dark: bool = True, phone: bool = False) -> None:
        """Set the size of the window (pixels) and the colour scheme of the system."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, name: str) -> Path:
        """Save a screenshot as `build/screenshots/NAME.png`; return its path."""
        answer = await self.call("Page.captureScreenshot", format="png")
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        path.write_bytes(base64.b64decode(answer["data"]))
        return path


class Browser:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self._socket:
            answer = message.json()
            if "id" in answer:
                self._waiting.pop(answer["id"]).set_result(answer)

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send one command of the protocol, of a page if `session` names one; return its result."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        target = {} if session is None else {"sessionId": session}
        await self._socket.send_json({"id": number, "method": method, "params": parameters, **target})
        answer = await self._waiting[number]
        if "error" in answer:
            raise CommandError(answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return result

    async def tab(self, url: str = "about:blank") -> Tab:
        """Open a new page of a desktop's size, in dark colours."""
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        tab = Tab(self, attached["sessionId"])
        await tab.call("Page.enable")
        await tab.resize(1280, 900)
        await tab.go(url)
        return tab


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Browser]:
    """Run a browser that keeps its files in `profile`."""
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
