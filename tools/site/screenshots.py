"""Pictures of the built site for people who judge it: at the width of a desk and of a phone, dark and light."""

import asyncio
import base64
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.browser import Tab, browser
from tools.site import snapshot
from tools.site.pages import HANDBOOK

FOLDER: Final = HANDBOOK / "screenshots"
PAGES: Final = {
    "contents": "handbook/index.html",
    "tutorial": "handbook/tutorials/first-message.html",
    "example": "handbook/examples/refill.html",
    "from": "handbook/howto/from-jetstream.html",
    "core": "play/index.html#seed=7&faults=kill.store1..1000.1500",
}
SIZES: Final = {"desk": (1280, 900), "phone": (390, 844)}
QUALITY: Final = 45
"""Quality of the compression in percent: text stays sharp."""

WIDE: Final = "document.documentElement.scrollWidth > innerWidth"


def save(site: Path, folder: Path = FOLDER) -> Iterator[str]:
    """Save all pictures into a folder; yield the name of each page that is wider than its window."""
    folder.mkdir(exist_ok=True)
    return iter(asyncio.run(_saved(site, folder)))


async def _saved(site: Path, folder: Path) -> list[str]:
    wide = []
    with snapshot.served(site) as address, tempfile.TemporaryDirectory() as profile:
        async with browser(Path(profile)) as running:
            for name, page in PAGES.items():
                tab = await running.tab()
                await _open(tab, f"{address}/{page}", core=name == "core")
                for size, (width, height) in SIZES.items():
                    for dark in (True, False):
                        await tab.resize(width, height, dark=dark, phone=size == "phone")
                        await tab.evaluate(
                            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
                        )
                        picture = f"{name}-{size}-{'dark' if dark else 'light'}"
                        answer = await tab.call("Page.captureScreenshot", format="webp", quality=QUALITY)
                        (folder / f"{picture}.webp").write_bytes(base64.b64decode(answer["data"]))
                        if await tab.evaluate(WIDE):
                            wide.append(picture)
    return wide


async def _open(tab: Tab, address: str, *, core: bool) -> None:
    if core:
        await snapshot.first_film(tab, address)
        await tab.evaluate("(() => { const t = document.getElementById('time'); t.value = 2540; t.oninput(); })()")
        return
    await tab.go(address)
    await tab.evaluate("localStorage.setItem('theme', 'auto'); document.body.dataset.theme = 'auto'")
