"""A router that dies between a source and its store: `incident` names it, and `verify` joins both sides."""

import re
from pathlib import Path

import pytest

from stablecast.client import Context
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.settings import StoreConfig
from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.layers import Layer
from stablecast.evidence.incident.captured_routers import CapturedRouters
from stablecast.evidence.incident.report import examine
from stablecast.evidence.incident.tcp_lives import ENDED, Span
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.store.store import Store, StoreSettings
from stablecast.transports.wire import srs
from tests.adapters.router.test_hosts import MESSAGES, RELAY, STORE, Site, play
from tests.adapters.router.test_persistence import made
from tests.support.world_capture import captured


def strike(site: Site, fault: str) -> None:
    """Let the router be away for 10 s."""
    site.scene.pass_time(15)
    assert site.router is not None
    if fault == "killed":
        site.router.kill()
        site.scene.pass_time(10)
        site.begin_router()
    else:
        edge, desk = site.scene.host("edge"), site.scene.host("desk")
        site.scene.cut(edge, desk)
        site.scene.pass_time(10)
        site.scene.heal(edge, desk)


@pytest.mark.parametrize("fault", ["killed", "cut off"])
def test_a_router_that_is_away_is_named(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def store(site: Site, domain: int) -> None:
        settings = StoreSettings(
            f"{site.address(domain)}:{STORE}",
            made("store"),
            StoreConfig("", seed=1),
            new=True,
            resolver=(f"{site.address(domain)}:{RELAY}",),
            trace=Path("traces"),
        )
        await Store(settings).start()
        await site.stay()

    def context(site: Site, domain: int) -> Context:
        relay = f"{site.address(domain)}:{RELAY}"
        return Context(resolver=[relay], interface=site.address(domain), session_id=domain, trace=Path("traces"))

    monkeypatch.setattr(Site, "store", store)
    monkeypatch.setattr(Site, "context", context)
    sites: list[Site] = []

    def story(site: Site, found: list[bytes]) -> None:
        sites.append(site)
        strike(site, fault)

    assert play("tcp", 2, story, pause=0.1) == MESSAGES
    paths = []
    for host in sites[0].scene.hosts.values():
        if "traces" not in host.disk.listing(host.disk.root):
            continue
        for name, _, contents in host.disk.backup("traces").files:
            if isinstance(contents, bytes):
                path = tmp_path / host.name / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(contents)
                paths.append(path)
    assert verify_paths(paths).violations == []
    first = examine(paths).happenings[0]
    assert first.kind == "stability"
    assert "or the router to domain 2 did not work" in first.text


SHOP, DESK, EDGE = "10.0.0.1", "10.0.0.2", "10.0.0.3"
DOWN = r"Router at 10\.0\.0\.3 was down for 10\.0 s, .*: connections ended"
SILENT = r"Router at 10\.0\.0\.3 was silent for 11\.\d s, .*: it announced no routes"
NAMED = (
    r".*source orders at 10\.0\.0\.1 was cut off from all of its stores .*, or the router at 10\.0\.0\.3 did not work"
)


@pytest.mark.parametrize(
    ("fault", "hosts", "told"),
    [
        ("killed", (SHOP, DESK), {DOWN}),
        ("killed", (SHOP, DESK, EDGE), {DOWN}),
        ("killed", (EDGE,), {DOWN}),
        ("cut off", (SHOP, DESK), {NAMED, SILENT}),
        ("cut off", (SHOP, DESK, EDGE), {NAMED}),
    ],
)
def test_captures_alone_name_the_router(fault: str, hosts: tuple[str, ...], told: set[str], tmp_path: Path) -> None:
    with captured() as capture:
        assert play("tcp", 2, lambda site, _: strike(site, fault), pause=0.1) == MESSAGES
    happenings = examine([], captures=[one for one in capture.write(tmp_path) if one.stem in hosts]).happenings
    found = [one.text for one in happenings if one.kind != "deaf"]
    assert len(found) == len(told)
    assert all(any(re.fullmatch(one, text) for text in found) for one in told)


def test_a_pause_of_routes_over_a_service_is_none() -> None:
    """Services are told of routes once."""
    routers = CapturedRouters()
    record = srs.RouteInfo(domains=(2,), address=EDGE, port=14_391, instance=b"edge0001")
    layer = Layer("SRS", "RTIR", record)
    for second in (1, 60):
        packet = CapturePacket(second, 0, second * SECOND, None, None, None, None, "", (layer,), FrameVerdict.DECODED)
        routers.add_packet(packet)
    gone = [Span(20 * SECOND, 1, 21 * SECOND, 2, ENDED)]
    assert routers.away(EDGE, gone) == gone
