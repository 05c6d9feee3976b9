"""The monitor in a real browser: what a person sees, and that it moves by itself.

Pictures of each page are left in `build/screenshots/`, which git ignores.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from stablecast.client import Context
from stablecast.core.protocol.settings import StoreConfig
from stablecast.ops.monitor import Monitor, MonitorSettings, Permission
from stablecast.store import observatory
from stablecast.store.observatory import WatchedStore
from stablecast.store.store import Store, StoreSettings
from tests.adapters.ops.monitor.staged_store import Staged, busy
from tests.support.browser import NEEDS_CHROMIUM, Browser, Tab, browser
from tests.support.network import KEPT, LOCAL

pytestmark = [NEEDS_CHROMIUM, pytest.mark.asyncio(loop_scope="module")]
READY = "document.body.dataset.updates > 0"
TOKEN = "open-sesame"
DRESSES = {"dark": (1280, 900, True), "light": (1280, 900, False), "phone": (390, 844, True)}
"""Width, height, and whether the colours are dark."""


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps follow each other fast, so that no test waits for seconds to pass."""
    monkeypatch.setattr(observatory, "FRESH_NS", 0)
    monkeypatch.setattr("stablecast.ops.monitor.board.SWEEP_SECONDS", 0.2)
    monkeypatch.setattr("stablecast.ops.monitor.board.SWEEP_SHARE", 0.9)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """One browser for all tests: starting it takes longer than most of them."""
    async with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@asynccontextmanager
async def looking(
    opened: Browser, *stores: WatchedStore, permission: Permission = Permission.READ_ONLY, token: str = ""
) -> AsyncIterator[tuple[Tab, str]]:
    """A browser's page, and where the monitor of these stores is."""
    monitor = Monitor(MonitorSettings(permission=permission, token=token), stores)
    monitor.start()
    try:
        tab = await opened.tab()
        yield tab, f"http://{monitor.address}"
        await tab.call("Page.close")
    finally:
        await monitor.stop()


async def shown(tab: Tab, url: str) -> None:
    await tab.go(url)
    await tab.until(READY)


async def flow(staged: Staged, lives: dict[int, int]) -> None:
    """Messages come and are read, for ever."""
    sent = dict.fromkeys(lives, 500)
    turn = 0
    while True:
        turn += 1
        for place, (reg_id, life) in enumerate(lives.items()):
            count = 5 + (7 * turn + 3 * place) % 20
            staged.data(life, sent[reg_id], count)
            sent[reg_id] += count
        staged.acknowledge(1001, 2001, lives[1001], sent[1001] - 1 - turn * 7 % 40)
        await asyncio.sleep(0.1)


@pytest.mark.rows("P-911", "P-922", "P-923")
async def test_a_real_store_is_seen_at_work(opened: Browser, tmp_path: Path) -> None:
    """A store with a source and a receiver; what changes is shown without loading the page anew."""
    (tmp_path / "store").mkdir()
    config = StoreConfig(f"{LOCAL}:0", 1, repository=KEPT)
    store = Store(StoreSettings(f"{LOCAL}:0", tmp_path / "store", config, new=True))
    await store.start()
    watched = WatchedStore(store, asyncio.get_running_loop(), 0)
    async with (
        Context(session_id=1) as context,
        Context(session_id=2) as other,
        looking(opened, watched) as (tab, base),
    ):
        source = await context.source("orders", stores=[store.address])
        receiver = other.receiver("orders", source=source.config.transport)
        await source.send_many(b"%d" % number for number in range(20))
        for _ in range(15):
            (await anext(receiver)).consumed()
        await source.wait_stable_through(19)
        [reg_id] = store.machine.status.repositories
        await shown(tab, f"{base}/stores/0")
        await tab.until("document.querySelector('#sources').innerText.includes('orders')")
        await tab.evaluate("window.before = 1; document.querySelector('#sources a').click()")
        await tab.until(f"location.pathname === '/stores/0/{reg_id}' && {READY}")
        await tab.until("document.querySelector('#facts').innerText.includes('[0, 0, 13]')")
        await tab.evaluate("window.before = 2")
        await source.send_many(b"%d" % number for number in range(12))
        await source.wait_stable_through(31)
        await tab.until("document.querySelector('#facts').innerText.includes('[0, 0, 1f]')")
        assert await tab.evaluate("window.before") == 2, "the page was loaded anew"
        [reader] = store.machine.clients.readers[reg_id]
        await shown(tab, f"{base}/stores/0/{reader}")
        await tab.until("/ACK\\s+e\\b/.test(document.querySelector('#facts').innerText)")
        assert f"{reader}: Receiver [" in await tab.text("h1")
    await store.stop()


async def test_every_page_in_every_dress(opened: Browser) -> None:
    """On a wall, on paper-white, and on a phone, where nothing sticks out; nothing comes from another host."""
    staged = busy()
    lives = {1001: 1001 << 32 | 17, 1003: 1003 << 32 | 17}
    staged.data(lives[1003], 0, 500)
    running = asyncio.create_task(flow(staged, lives))
    pages = {
        "index": "/",
        "stores": "/stores",
        "store": "/stores/0",
        "source": "/stores/0/1002",
        "receiver": "/stores/0/2001",
    }
    async with looking(opened, staged.watched(), Staged("quotes").watched(1)) as (tab, base):
        await tab.go(f"{base}/")
        await tab.until("document.body.dataset.updates > 12")
        for name, path in pages.items():
            for dress, (width, height, dark) in DRESSES.items():
                if dress != "dark" and name in ("stores", "receiver"):
                    continue
                await tab.resize(width, height, dark=dark, phone=dress == "phone")
                await shown(tab, base + path)
                assert await tab.evaluate("document.documentElement.scrollWidth") <= width, (name, dress)
                ground = await tab.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (ground == "rgb(13, 17, 23)") == dark
                assert (await tab.picture(f"{name}-{dress}")).stat().st_size > 10_000
        script = "performance.getEntriesByType('resource').map(one => new URL(one.name).origin)"
        assert set(await tab.evaluate(script)) == {base}
    running.cancel()


async def test_a_visitor_chooses_the_colours(opened: Browser) -> None:
    async with looking(opened, busy().watched()) as (tab, base):
        await shown(tab, f"{base}/")
        for theme in ("dark", "light", None):
            await tab.evaluate("document.getElementById('theme').click()")
            assert await tab.evaluate("document.documentElement.dataset.theme") == theme
            await shown(tab, f"{base}/stores")
            assert await tab.evaluate("document.documentElement.dataset.theme") == theme


async def test_names_do_nothing(opened: Browser) -> None:
    """A topic is what a stranger calls it."""
    staged = Staged(name="<img src=x onerror='window.hurt = 1'>")
    staged.source(1001, "<script>window.hurt = 1</script>")
    async with looking(opened, staged.watched()) as (tab, base):
        for path in ("/", "/stores/0", "/stores/0/1001"):
            await shown(tab, base + path)
            assert await tab.evaluate("window.hurt") is None
        assert "<script>window.hurt" in await tab.text("#facts")


async def test_a_thousand_sources(opened: Browser) -> None:
    """A hundred at a time, the worst first; any of them is found; pages stay live."""
    staged = Staged()
    for number in range(1000):
        life = staged.source(5000 + number, f"md/{number:04}")
        staged.data(life, 0, 10)
    torn = 5777 << 32 | 17
    staged.data(torn, 20, 5)
    async with looking(opened, staged.watched()) as (tab, base):
        await shown(tab, f"{base}/stores/0")
        await tab.until("document.querySelectorAll('#sources tbody tr').length === 100")
        assert "md/0777" in await tab.text("#sources tbody tr")
        assert "page 1 of 10" in await tab.text("#sources")
        await tab.picture("thousand")
        await tab.evaluate("document.querySelector('[name=q]').value = '0123'; document.forms[0].submit()")
        await tab.until(f"location.search.includes('q=0123') && {READY}")
        assert await tab.evaluate("document.querySelectorAll('#sources tbody tr').length") == 1
        staged.data(5123 << 32 | 17, 10, 246)
        await tab.until("document.querySelector('#sources').innerText.includes('ff')")


@pytest.mark.rows("P-807")
async def test_who_may_only_look_has_no_buttons(opened: Browser) -> None:
    """Read-only."""
    async with looking(opened, busy().watched()) as (tab, base):
        for path in ("/stores/0", "/stores/0/1002"):
            await shown(tab, base + path)
            assert await tab.evaluate("document.querySelectorAll('form[method=post]').length") == 0
        assert await tab.evaluate("fetch('/stores/0/reset', {method: 'POST'}).then(answer => answer.status)") == 403


@pytest.mark.rows("P-807", "P-906")
async def test_who_may_do_more_resets_rates_and_evicts(opened: Browser) -> None:
    """A page that says so, with a link back; P-807: read-write."""
    staged = busy()
    staged.serving.received = 100
    async with looking(opened, staged.watched(), permission=Permission.READ_WRITE, token=TOKEN) as (tab, base):
        await tab.call("Page.navigate", url=f"{base}/stores/0")
        await tab.until("location.pathname === '/login' && document.forms.length === 1")
        await tab.picture("login")
        await tab.evaluate(f"document.querySelector('[name=token]').value = '{TOKEN}'; document.forms[0].submit()")
        await tab.until(f"location.pathname === '/' && {READY}")
        await shown(tab, f"{base}/stores/0")
        await tab.picture("read-write")
        await tab.evaluate("document.querySelector('form[action$=reset] button').click()")
        await tab.until("document.body.innerText.includes('Rate statistics have been reset')")
        assert staged.serving.received == 0
        await tab.evaluate("document.querySelector('#notice a').click()")
        await tab.until(f"location.pathname === '/stores/0' && {READY}")
        await shown(tab, f"{base}/stores/0/2001")
        await tab.evaluate("document.querySelector('[name=sure]').click()")
        await tab.evaluate("document.querySelector('form[action$=evict] button').click()")
        await tab.until("document.body.innerText.includes('2001 was removed from this store')")
        assert 2001 not in staged.clients.records


async def test_a_page_says_when_the_monitor_is_gone(opened: Browser) -> None:
    monitor = Monitor(MonitorSettings(), [busy().watched()])
    monitor.start()
    tab = await opened.tab()
    await shown(tab, f"http://{monitor.address}/")
    assert await tab.text("#live") == "live"
    await monitor.stop()
    await tab.until("document.getElementById('live').innerText === 'no connection'")
