"""TLS through a router: each hop has its own, and each host a certificate of its own."""

from functools import partial
from pathlib import Path

import pytest
import trustme

from stablecast.client import Context
from stablecast.runtime import machine
from stablecast.runtime.logs import Severity
from stablecast.runtime.tls import VARIABLE
from tests.adapters.router.test_daemon import Domains, until, world
from tests.adapters.router.test_hosts import EDGE, MESSAGES, NAMES, Site, play
from tests.adapters.runtime.test_tls import certified


@pytest.mark.parametrize("home", [1, 2])
def test_everything_passes_with_certificates(home: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    where = {name: str(certified(tmp_path / name, authority)) for name in (EDGE, *NAMES.values())}
    used: list[str] = []

    def certify(name: str) -> None:
        used.append(name)
        machine.process.environment[VARIABLE] = where[name]

    route, store, context = Site.route, Site.store, Site.context

    async def certified_route(site: Site) -> None:
        certify(EDGE)
        await route(site)

    async def certified_store(site: Site, domain: int) -> None:
        certify(NAMES[domain])
        await store(site, domain)

    def certified_context(site: Site, domain: int) -> Context:
        certify(NAMES[domain])
        return context(site, domain)

    monkeypatch.setattr(Site, "route", certified_route)
    monkeypatch.setattr(Site, "store", certified_store)
    monkeypatch.setattr(Site, "context", certified_context)
    assert play("tcp", home, lambda _site, _found: None) == MESSAGES
    assert {*used} == {*where}


def test_a_portal_refuses_transports_that_tls_does_not_protect(tmp_path: Path) -> None:
    where = str(certified(tmp_path / "ours", trustme.CA()))

    def warned(domains: Domains) -> bool:
        return any(level is Severity.WARNING and "TLS does not protect" in text for level, text in domains.lines)

    async def story(domains: Domains) -> None:
        machine.process.environment[VARIABLE] = where
        domains.group()
        domains.group()
        router = await domains.router("tcp", "lbtru")
        await (await domains.context(1)).source("orders")
        (await domains.context(2)).receiver("orders")
        await until(partial(warned, domains))
        assert not router.snapshot().portals[0].received.messages

    world(story)
