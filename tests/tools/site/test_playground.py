"""The page that runs the core, in a real Chromium: a store's death, a refill, an election, a documented loss.

The page needs files of others, which `make site` fetches. So the test runs where the page was built, and `make
site-check` builds it first.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from stablecast.lab.sim.frames import digest
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw
from tests.support.browser import NEEDS_CHROMIUM, Tab, browser
from tools.site import snapshot
from tools.site.assembly import OUTPUT

PLACE: Final = OUTPUT / "play"
pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.thorough,
    pytest.mark.skipif(not (PLACE / "stablecast.zip").is_file(), reason="the page is not built: run 'make site' first"),
]


@asynccontextmanager
async def opened(tmp_path: Path, link: str, folder: Path = PLACE) -> AsyncIterator[Tab]:
    """Open the page with a link, and wait until the core has run its world."""
    with snapshot.served(folder) as address:
        async with browser(tmp_path / "profile") as running:
            tab = await running.tab()
            await snapshot.first_film(tab, f"{address}/index.html#{link}")
            yield tab


async def _play(tab: Tab, script: str) -> None:
    """Do something that asks for another world, and wait for its film."""
    before = int(await tab.evaluate("document.body.dataset.answers"))
    await tab.evaluate(f"(() => {{ {script} }})()")
    await tab.until(f"Number(document.body.dataset.answers) > {before}")


async def _at(tab: Tab, ms: int) -> None:
    """Move to a time of the film."""
    await tab.evaluate(f"(() => {{ const t = document.getElementById('time'); t.value = {ms}; t.oninput(); }})()")


@pytest.mark.parametrize("start", ["snapshot", "archive"])
async def test_the_page_has_the_digest_of_the_command_line(tmp_path: Path, start: str) -> None:
    transcript: list[str] = []
    run(draw(7, wipe=False), transcript=transcript)
    folder = PLACE
    if start == "archive":
        folder = tmp_path / "play"
        shutil.copytree(PLACE, folder, ignore=shutil.ignore_patterns(snapshot.FILE))
    async with opened(tmp_path, "seed=7&drawn=1", folder) as tab:
        assert await tab.text("#digest") == digest(transcript)
        assert await tab.evaluate("document.body.dataset.from") == start
        others = await tab.evaluate(
            "performance.getEntriesByType('resource').filter(one => !one.name.startsWith(location.origin)).length"
        )
        assert others == 0


async def test_clicks_kill_a_store_elect_a_proxy_and_show_the_documented_loss(tmp_path: Path) -> None:
    async with opened(tmp_path, "seed=7") as tab:
        await _at(tab, 1000)
        await _play(tab, "document.querySelector('#store1 [data-act=kill]').click()")
        await _at(tab, 1800)
        assert "dead" in await tab.text("#store1")
        link = await tab.evaluate("location.hash")
        assert "kill.store1" in link
        dead = await tab.text("#digest")

        await _play(tab, "document.querySelector('[data-scene=refill]').click()")
        await _at(tab, 2540)
        assert "refilled" in await tab.text("#store1")
        await _at(tab, 3000)
        assert "refilled" not in await tab.text("#store1")
        assert "Refilled" in await tab.text("#events")

        await _play(tab, "document.querySelector('[data-scene=election]').click()")
        await _at(tab, 2600)
        assert "stands in for the source" in await tab.text("#stores")

        await _play(tab, "document.querySelector('[data-scene=loss]').click()")
        await _at(tab, 4000)
        assert "S2 NoReuse" in await tab.text("#verdict")
        await _play(tab, "const r = document.getElementById('rules'); r.value = 'safe'; r.onchange();")
        await _at(tab, 99_999)
        assert "no promise was broken" in await tab.text("#verdict")

        await _play(tab, f"location.hash = {link!r}")
        assert await tab.text("#digest") == dead


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (1280, False), (390, True), (390, False)])
async def test_the_page_fits_a_phone_and_a_desk(tmp_path: Path, width: int, dark: bool) -> None:
    async with opened(tmp_path, "seed=7&faults=kill.store1..1000.1500") as tab:
        await tab.resize(width, 900, dark=dark, phone=width < 500)
        await _at(tab, 1500)
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shown = await tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (shown == "rgb(255, 255, 255)") is not dark
        await asyncio.sleep(0)
        await tab.picture(f"playground-{width}-{'dark' if dark else 'light'}")
