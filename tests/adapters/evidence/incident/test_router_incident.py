"""A router that dies between a source and its store: `incident` names it, and `verify` joins both sides."""

from pathlib import Path

import pytest

from stablecast.client import Context
from stablecast.core.protocol.settings import StoreConfig
from stablecast.evidence.incident.report import examine
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.store.store import Store, StoreSettings
from tests.adapters.router.test_hosts import MESSAGES, RELAY, STORE, Site, play
from tests.adapters.router.test_persistence import made


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
