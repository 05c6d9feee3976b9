"""The page of a fleet in a real browser, over surveys that a test chooses. Pictures are in `build/screenshots/`."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from stablecast.ops.fleet.copies import joined
from stablecast.ops.fleet.findings import FleetLook
from stablecast.ops.fleet.history import FleetHistory
from stablecast.ops.fleet.page import render
from stablecast.ops.fleet.site import FleetSite
from stablecast.ops.fleet.survey import Survey, SurveyedRouter, SurveyedService, SurveyedStore, survey
from stablecast.ops.monitor.access import FREE_GUESSES
from stablecast.ops.monitor.server import serving
from stablecast.ops.monitor.settings import MonitorSettings
from stablecast.ops.router.site import RouterSite, record
from stablecast.router.views import Flow, PortalView, RouterView
from stablecast.runtime import ports
from tests.adapters.ops.fleet.test_fleet import SECOND, copy, receiver, store
from tests.support.browser import NEEDS_CHROMIUM, Browser, browser

DRESSES = {
    "dark": (1280, 900, True),
    "light": (1280, 900, False),
    "phone": (390, 844, True),
    "phone-light": (390, 844, False),
}
"""Width, height, and whether the colours are dark."""
TOPICS = ("orders", "prices/emea", "trades")
SILENT = {"http://10.0.0.3:15304": "the monitor at http://10.0.0.3:15304 does not answer: connection refused"}
GIB = 1 << 30


def stores(names: str, *, number: int = 0, **first: Any) -> list[SurveyedStore]:
    """Return stores with the same sources; `first` changes the record of the first one."""
    topics = TOPICS if not number else [f"quotes/{at:05}" for at in range(number)]
    named = [f"10.0.0.{name}:14567" for name in "123"]
    sources = [copy(topic, topic_index=at, receivers=[receiver(90)], stores=named) for at, topic in enumerate(topics)]
    usual: dict[str, Any] = {"room": (80 * GIB, GIB), "journal": {"longest_sync_ns": 4_000_000}, "index": 0}
    return [store(name, *sources, **(usual | (first if name == names[0] else {}))) for name in names]


def problem(level: str, code: str, text: str) -> dict[str, Any]:
    return {"level": level, "findings": [{"level": level, "code": code, "text": text}]}


SLOW = problem("WARNING", "slow-disk", "the disk is slow: 80 MiB wait for it, and nothing is received meanwhile")
FULL = problem("CRITICAL", "disk-failed", "the journal in /data cannot be written: no space left on device; make room")


def router(**first: Any) -> SurveyedRouter:
    """A router between domains 1 and 2, as its monitor shows it; `first` changes the portal of domain 1."""
    portals = (PortalView("left", 1, **first), PortalView("right", 2, sent=Flow(1_234, 99)))
    return SurveyedRouter("http://10.0.0.8:15305", record(RouterView("edge", portals)))


CONDITIONS: dict[str, tuple[Callable[[], Survey], str]] = {
    "all well": (lambda: Survey(stores("123"), {}, [SurveyedService("http://10.0.0.9:15389", 12, 3)]), "All well: 3"),
    "one store dead": (
        lambda: Survey(stores("12"), SILENT),
        "store 10.0.0.3:14567: it is down, or cannot be reached: the ",
    ),
    "full disk": (
        lambda: Survey(stores("123", **FULL, failure="no space", room=(0, GIB)), {}),
        "store 1 (10.0.0.1:14567): the journal in /data cannot be written: no space left on device",
    ),
    "slow disk": (lambda: Survey(stores("123", **SLOW), {}), "store 1 (10.0.0.1:14567): the disk is slow: 80 MiB"),
    "a router drops": (
        lambda: Survey(stores("123"), {}, routers=[router(dropped={"blocking": 3})]),
        "router edge, portal left: 3 messages were dropped, because the queue of the portal was full",
    ),
    "no quorum": (
        lambda: Survey([*stores("1"), *[store(name, copy("trades", topic_index=2)) for name in "23"]], {}),
        "topic orders and 1 more: 1 of 3 stores serve it, and 2 are needed: nothing more becomes stable",
    ),
    "ten thousand sources": (
        lambda: Survey(stores("123", number=10_000), {}),
        "All well: 3 stores serve 10,000 sources",
    ),
}
"""Surveys, and the first sentence of the page."""


@asynccontextmanager
async def served(look: Callable[[], Survey], token: str = "") -> AsyncIterator[str]:
    """Serve the page of a survey at a free port."""
    listening = ports.listen("127.0.0.1", 0, "the page")
    async with serving(FleetSite(MonitorSettings(token=token), look).application(), listening):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def got(url: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("name", CONDITIONS)
def test_the_cause_is_the_first_thing_on_the_page(name: str) -> None:
    make, first = CONDITIONS[name]
    page = render(FleetLook.of(make()), FleetHistory())
    assert page.partition("<h1>")[2].partition("</h1>")[0].partition("</span>")[2].startswith(first)
    assert page.count("<tr class=") < 120


def test_a_router_is_named_with_its_domains_and_figures() -> None:
    look = FleetLook.of(Survey(stores("123"), {}, routers=[router()]))
    row = render(look, FleetHistory()).partition('id="routers"')[2]
    assert all(text in row for text in ("edge", "1, 2", "1,234", "http://10.0.0.8:15305"))
    assert look.as_json()["routers"] == [
        {"name": "edge", "monitor": "http://10.0.0.8:15305", "level": "OK", "domains": [1, 2]}
    ]


async def test_a_survey_asks_the_monitors_of_routers() -> None:
    view = RouterView("edge", (PortalView("left", 1), PortalView("right", 2)))
    listening = ports.listen("127.0.0.1", 0, "the monitor")
    async with serving(RouterSite(MonitorSettings(), lambda: view).application(), listening):
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        surveyed = await asyncio.to_thread(survey, [base])
    assert (surveyed.stores, surveyed.services, surveyed.silent) == ([], [], {})
    assert [(one.name, one.domains) for one in surveyed.routers] == [("edge", [1, 2])]


def test_text_of_clients_is_no_markup() -> None:
    page = render(FleetLook.of(Survey([store("1", copy("<script>alert(1)</script>"))], {})), FleetHistory(), "<script>")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_search_finds_a_source_by_topic_or_store() -> None:
    look = FleetLook.of(Survey(stores("123", number=500), {}))
    assert render(look, FleetHistory(), "quotes/00499").count('id="source-') == 1
    assert render(look, FleetHistory(), "10.0.0.2").count('id="source-') == 100
    assert "0 of 0 that match" in render(look, FleetHistory(), "nothing")


def test_sparklines_have_a_time_axis_and_disks_a_time_until_full() -> None:
    history = FleetHistory()
    survey = Survey([], {})
    for second in range(60):
        room = (10 * GIB - second * (GIB >> 4), GIB)
        survey = Survey(stores("123", room=room), {})
        history.add(survey, joined(survey), second * SECOND)
    page = render(FleetLook.of(survey), history)
    assert page.count("<span>-59 s</span><span>now</span>") == 3
    # 5.3125 GiB are left above the limit, and 1/16 GiB goes in each second.
    assert '<td data-name="until full" class="n">1 min 25 s' in page


async def test_the_site_answers_its_own_names_and_programs() -> None:
    async with served(CONDITIONS["one store dead"][0]) as base:
        assert (await got(f"{base}/"))[0] == 200
        status, text = await got(f"{base}/api/fleet")
        found = json.loads(text)
        assert (status, found["level"], found["findings"][0]["code"]) == (200, "CRITICAL", "silent")
        assert (await got(f"{base}/", Host="evil.example"))[0] == 421
        assert (await got(f"{base}/etc/passwd"))[0] == 404
        assert (await got(f"{base}/static/fleet.css"))[0] == 200


async def test_the_site_asks_for_the_token_of_its_monitors() -> None:
    async with served(CONDITIONS["all well"][0], "a-token") as base:
        assert (await got(f"{base}/api/fleet"))[0] == 401
        assert "login" in (await got(f"{base}/", Accept="text/html"))[1]
        statuses = [(await got(f"{base}/", Authorization=f"Bearer {at}"))[0] for at in range(FREE_GUESSES + 2)]
        assert statuses[-2:] == [401, 429]


async def test_the_site_shows_the_fleet_for_the_token() -> None:
    async with served(CONDITIONS["all well"][0], "a-token") as base:
        assert (await got(f"{base}/api/fleet", Authorization="Bearer a-token"))[0] == 200


async def test_a_store_that_dies_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.ops.fleet.site.FRESH_SECONDS", 0.0)
    surveys = iter([Survey(stores("123"), {})])
    async with served(lambda: next(surveys, Survey(stores("12"), SILENT))) as base:
        assert json.loads((await got(f"{base}/api/fleet"))[1])["level"] == "OK"
        found = json.loads((await got(f"{base}/api/fleet"))[1])["findings"][0]
    assert (found["code"], found["subjects"]) == ("silent", ["store 3 (10.0.0.3:14567)"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """One browser for all tests: starting it takes longer than most of them."""
    async with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@NEEDS_CHROMIUM
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", CONDITIONS)
async def test_people_see_the_cause_first(opened: Browser, name: str) -> None:
    """The sentence is above the fold in each size, and a phone cuts no column."""
    make, first = CONDITIONS[name]
    async with served(make) as base:
        tab = await opened.tab()
        await tab.go(f"{base}/")
        for dress, (width, height, dark) in DRESSES.items():
            await tab.resize(width, height, dark=dark, phone=dress.startswith("phone"))
            await tab.picture(f"fleet-{name.replace(' ', '-')}-{dress}")
            assert (await tab.text("h1")).startswith(first[:40])
            assert await tab.evaluate("document.querySelector('h1').getBoundingClientRect().top") < height / 4
            assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), dress
        await tab.call("Page.close")


def test_a_store_without_an_answer_has_its_name_in_the_table() -> None:
    page = render(FleetLook.of(CONDITIONS["one store dead"][0]()), FleetHistory())
    assert "10.0.0.3:14567: no answer" in page.partition('id="stores"')[2]
    assert "2 of 3 answer" in page


@NEEDS_CHROMIUM
@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_without_its_server_says_that_it_is_old(opened: Browser) -> None:
    async with served(CONDITIONS["all well"][0]) as base:
        tab = await opened.tab()
        await tab.go(f"{base}/")
    await tab.until("document.querySelector('h1').textContent.startsWith('No connection since ')")
    assert await tab.evaluate("document.getElementById('problems').className") == "banner l3"
    await tab.call("Page.close")


@NEEDS_CHROMIUM
@pytest.mark.asyncio(loop_scope="module")
async def test_a_command_that_is_being_copied_stays_selected(opened: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other sections are renewed meanwhile."""
    monkeypatch.setattr("stablecast.ops.fleet.site.FRESH_SECONDS", 0.0)
    looks = iter([CONDITIONS["one store dead"][0]()])
    async with served(lambda: next(looks, CONDITIONS["all well"][0]())) as base:
        tab = await opened.tab()
        await tab.go(f"{base}/")
        await tab.evaluate("getSelection().selectAllChildren(document.querySelector('p.step'))")
        await tab.until("document.querySelector('#stores small').textContent === '3 of 3 answer'")
        assert (await tab.evaluate("getSelection().toString()")).startswith("systemctl status")
        await tab.call("Page.close")


@NEEDS_CHROMIUM
@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_renews_itself(opened: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.ops.fleet.site.FRESH_SECONDS", 0.0)
    surveys = iter([CONDITIONS["all well"][0]()])
    async with served(lambda: next(surveys, CONDITIONS["slow disk"][0]())) as base:
        tab = await opened.tab()
        await tab.go(f"{base}/")
        await tab.until("document.querySelector('h1').textContent.includes('the disk is slow')")
        await tab.call("Page.close")
