"""Start the core once in a browser, and save the memory of that Python next to the page that runs it.

A browser that loads this snapshot starts in a third of the time. The page works without it, so a build without Chromium
leaves it out.
"""

import asyncio
import base64
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.support.browser import PROGRAM, Tab, browser

FILE: Final = "snapshot.bin"
RECORD: Final = """new Promise((done, fail) => {
    const worker = new Worker("worker.js#record", { type: "module" });
    worker.onerror = (error) => fail(new Error(error.message));
    worker.onmessage = ({ data }) => {
        if (data.failed) return fail(new Error(data.failed));
        const reader = new FileReader();
        reader.onload = () => done(reader.result.split(",")[1]);
        reader.readAsDataURL(data.snapshot);
    };
})"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Print nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def save(folder: Path) -> bool:
    """Save the snapshot into the folder of the page; return whether there is a Chromium that can make it."""
    if PROGRAM is None:
        return False
    (folder / FILE).write_bytes(asyncio.run(_recorded(folder)))
    return True


async def _recorded(folder: Path) -> bytes:
    with served(folder) as address, tempfile.TemporaryDirectory() as profile:
        async with browser(Path(profile)) as running:
            tab = await running.tab()
            await tab.go(f"{address}/play.css")  # any file of the folder: the page itself would start the core, too
            return base64.b64decode(await tab.evaluate(RECORD))


async def first_film(tab: Tab, address: str) -> float:
    """Open the page and wait for its first film; return the milliseconds since its navigation began."""
    await tab.call("Page.navigate", url=address)
    await tab.until("document.body?.dataset.answers === '1'")
    return float(await tab.evaluate("Number(document.body.dataset.answered)"))


def first_click(folder: Path) -> float:
    """Return the milliseconds until a browser that starts anew shows the first film of the page."""

    async def measured() -> float:
        with served(folder) as address, tempfile.TemporaryDirectory() as profile:
            async with browser(Path(profile)) as running:
                return await first_film(await running.tab(), f"{address}/index.html#seed=7")

    return asyncio.run(measured())
