"""The monitor of a router: findings, pages, JSON and metrics have the same figures, and its guard is that of stores."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import attrs
import pytest
from aiohttp.test_utils import TestClient, TestServer

from stablecast.ops.monitor.health import Urgency
from stablecast.ops.monitor.settings import MonitorSettings
from stablecast.ops.router import health
from stablecast.ops.router.metrics import exposition
from stablecast.ops.router.site import RouterSite, level, record
from stablecast.router.views import (
    Flow,
    KnownRouter,
    LinkView,
    PortalView,
    QueueView,
    RouterView,
    RouteView,
    SymbolView,
)

DROPS = dict.fromkeys(("duplicate", "blocking", "fragment size", "error"), 0)
LEFT = PortalView(
    name="left",
    domain=1,
    cost=3,
    address="127.0.0.1:14391",
    topics=2,
    pcre_patterns=1,
    remote_topics=4,
    proxy_receivers=5,
    proxy_sources=6,
    received=Flow(70, 7_000),
    sent=Flow(80, 8_000),
    unicast_received=9,
    dropped=DROPS,
    queue=QueueView(10, 20, 1_000),
    interest=(SymbolView("<orders>", (2,), 1),),
)
RIGHT = PortalView(name="right", domain=2, dropped=DROPS)
ROUTER = RouterView("edge", (LEFT, RIGHT), (RouteView(1, "left", 3), RouteView(2, "right", 1)))


def with_portal(**changes: Any) -> PortalView:
    return attrs.evolve(LEFT, **changes)


@asynccontextmanager
async def showing(view: RouterView, token: str = "") -> AsyncIterator[TestClient]:  # type: ignore[type-arg]
    site = RouterSite(MonitorSettings(token=token), lambda: view)
    jar = aiohttp.CookieJar(unsafe=True)
    async with TestClient(TestServer(site.application()), cookie_jar=jar) as client:
        yield client


def got(view: RouterView, path: str, *, accept: str = "text/html", token: str = "") -> tuple[int, str]:
    async def ask() -> tuple[int, str]:
        async with (
            showing(view, token) as client,
            client.get(path, headers={"Accept": accept}, allow_redirects=False) as answer,
        ):
            return answer.status, await answer.text()

    return asyncio.run(ask())


def test_a_sound_router_has_no_findings() -> None:
    assert [one for portal in ROUTER.portals for one in health.of_portal(portal)] == []
    assert level(ROUTER) is Urgency.OK


@pytest.mark.rows("R-298")
@pytest.mark.parametrize(
    ("portal", "code", "urgency"),
    [
        (with_portal(trouble="no service answers"), "portal", Urgency.CRITICAL),
        (with_portal(dropped={**DROPS, "blocking": 1}), "queue-full", Urgency.WARNING),
        (with_portal(dropped={**DROPS, "fragment size": 1}), "fragment-size", Urgency.WARNING),
        (with_portal(dropped={**DROPS, "error": 1}), "send-errors", Urgency.WARNING),
        (with_portal(queue=QueueView(900, 900, 1_000)), "queue-nearly-full", Urgency.WARNING),
        (with_portal(unidentified=1), "nameless-sources", Urgency.WARNING),
        (with_portal(unhandled=1), "unhandled-control", Urgency.WARNING),
        (with_portal(unicast_dropped={"hops": 1}), "loop", Urgency.CRITICAL),
        (with_portal(unicast_dropped={"no stream": 1}), "no-stream", Urgency.WARNING),
        (with_portal(unicast_dropped={"blocking": 1}), "unicast-queue-full", Urgency.WARNING),
    ],
)
def test_what_should_stay_zero_is_a_finding(portal: PortalView, code: str, urgency: Urgency) -> None:
    (found,) = health.of_portal(portal)
    assert (found.code, found.level) == (code, urgency)


@pytest.mark.parametrize("reason", ["duplicate"])
def test_a_duplicate_is_none(reason: str) -> None:
    assert [*health.of_portal(with_portal(dropped={**DROPS, reason: 9}))] == []


@pytest.mark.rows("R-291")
def test_the_record_has_all_figures_and_the_findings_of_each_portal() -> None:
    made = record(attrs.evolve(ROUTER, portals=(with_portal(unhandled=2), RIGHT)))
    assert (made["name"], made["level"], made["routes"][0]) == (
        "edge",
        "WARNING",
        {"domain": 1, "portal": "left", "cost": 3},
    )
    left, right = made["portals"]
    assert (left["queue"], left["received"]) == (
        {"now": 10, "peak": 20, "limit": 1_000},
        {"messages": 70, "bytes": 7_000},
    )
    assert [one["code"] for one in left["findings"]] == ["unhandled-control"]
    assert right["findings"] == []


@pytest.mark.rows("R-028", "R-172", "R-294", "R-295")
def test_metrics_have_the_figures_of_the_record() -> None:
    lines = "".join(exposition(ROUTER)).splitlines()
    at = 'router="edge",portal="left",domain="1"'
    for line in (
        f"stablecast_router_portal_up{{{at}}} 1",
        f"stablecast_router_portal_cost{{{at}}} 3",
        f'stablecast_router_interest{{{at},kind="pcre"}} 1',
        f'stablecast_router_proxies{{{at},kind="source"}} 6',
        f"stablecast_router_queue_peak_bytes{{{at}}} 20",
        f'stablecast_router_messages_total{{{at},way="received",kind="topic"}} 70',
        f'stablecast_router_dropped_total{{{at},reason="fragment size"}} 0',
        'stablecast_router_routes{router="edge"} 2',
    ):
        assert line in lines
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {line.partition("{")[0] for line in lines if not line.startswith("#")} <= names
    assert "".join(exposition(ROUTER, openly=True)).endswith("# EOF\n")


@pytest.mark.rows("R-290", "R-291")
def test_metrics_of_the_process_stand_before_those_of_the_router() -> None:
    _, text = got(ROUTER, "/metrics", accept="application/openmetrics-text")
    assert text.index("process_resident_memory_bytes ") < text.index("stablecast_router_portal_up{")
    assert text.endswith("# EOF\n")


def test_pages_show_portals_and_escape_what_peers_named() -> None:
    status, text = got(ROUTER, "/")
    assert (status, "No findings" in text, "/portals/1" in text) == (200, True, True)
    status, text = got(ROUTER, "/portals/0")
    assert (status, "&lt;orders&gt;" in text, "<orders>" in text) == (200, True, False)
    assert got(ROUTER, "/portals/2")[0] == 404


def test_a_finding_of_a_portal_leads_to_its_page() -> None:
    _, text = got(attrs.evolve(ROUTER, portals=(LEFT, attrs.evolve(RIGHT, unidentified=3))), "/")
    assert '<a href="/portals/1">right</a>' in text
    assert "nameless-sources" in text


@pytest.mark.parametrize(("trouble", "status"), [("", 200), ("no service answers", 503)])
def test_probes_ask_whether_all_portals_work(trouble: str, status: int) -> None:
    view = attrs.evolve(ROUTER, portals=(with_portal(trouble=trouble), RIGHT))
    assert got(view, "/readyz")[0] == got(view, "/health")[0] == status
    assert got(view, "/livez")[0] == 200


def test_the_guard_of_stores_stands_before_it() -> None:
    assert got(ROUTER, "/api/router", token="secret")[0] == 303
    assert got(ROUTER, "/metrics", accept="*/*", token="secret")[0] == 401
    assert got(ROUTER, "/readyz", token="secret")[0] == 200


NORTH = PortalView(
    name="north",
    domain=0,
    address="10.30.0.7:14380",
    dropped=DROPS,
    link=LinkView("<far>", 7, 1_000_000, 2_000_000, 3_000_000, 2_500_000, stray=4),
)
ROUTERS = (KnownRouter("8" * 16, "edge", (1,), ("<far>",)), KnownRouter("9" * 16, "<far>", (2,), ("edge",)))
NETWORK = attrs.evolve(ROUTER, portals=(LEFT, NORTH), node="8" * 16, signature=0xAB, routers=ROUTERS)


@pytest.mark.rows("R-292", "R-293")
def test_links_and_the_network_are_shown() -> None:
    """R-292, R-293: who is at the other end, the time to it, and all routers with their neighbours."""
    status, page = got(NETWORK, "/")
    assert status == 200
    assert "link: &lt;far&gt;" in page
    assert "000000ab" in page
    assert "9" * 16 in page
    assert "<far>" not in page
    _, page = got(NETWORK, "/portals/1")
    assert "1.000, 2.000, 3.000, 2.500" in page
    metrics = "".join(exposition(NETWORK))
    assert 'stablecast_router_link_up{router="edge",portal="north",domain="0"} 1' in metrics
    assert 'stablecast_router_link_trip_seconds{router="edge",portal="north",figure="mean"} 0.002000' in metrics
    assert 'stablecast_router_known_routers{router="edge"} 2' in metrics
    assert 'stablecast_router_map_signature{router="edge"} 171' in metrics
    assert 'stablecast_router_link_up{router="edge",portal="left"' not in metrics
