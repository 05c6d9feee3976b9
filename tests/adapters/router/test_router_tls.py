"""TLS through a router: each hop has its own, and each host a certificate of its own."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import attrs
import pytest
import trustme

from stablecast.client import Context
from stablecast.core.protocol.messages import Message, Register, Role, StableAck
from stablecast.router.portal import PortalContext
from stablecast.runtime import machine
from stablecast.runtime.logs import Severity
from stablecast.runtime.origins import Origin, Origins
from stablecast.runtime.policy import POLICY, Policy
from stablecast.runtime.request_port import Peer
from stablecast.runtime.tls import VARIABLE
from stablecast.transports import codec
from stablecast.transports.codec.routed import Endpoint, routed
from stablecast.transports.wire.headers import Stream
from tests.adapters.router.test_daemon import Domains, until, world
from tests.adapters.router.test_hosts import EDGE, MESSAGES, NAMES, Site, play
from tests.adapters.runtime.test_tls import certified

ASKED = Register(Role.SOURCE, 0, 1, 0, 7, 0, "orders", 1, "192.0.2.1:1", "192.0.2.1:2", 0, 0)

STORE = "store"
"""The name in the certificate of the store; the others are those of their hosts."""

POLICY_OF_ALL = """
[[allow]]
names = ["shop"]
roles = ["source"]
topics = ["orders"]

[[allow]]
names = ["desk"]
roles = ["receiver"]
topics = ["ord.*"]

[[allow]]
names = ["store"]
roles = ["store"]

[[allow]]
names = ["edge"]
roles = ["router"]
"""


@pytest.mark.parametrize("home", [1, 2])
@pytest.mark.parametrize("policy", ["", POLICY_OF_ALL], ids=["members", "roles"])
def test_everything_passes_with_certificates(
    home: int, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    where = {
        name: str(certified(tmp_path / name, authority, common_name=name)) for name in (EDGE, STORE, *NAMES.values())
    }
    for place in where.values() if policy else ():
        (Path(place) / POLICY).write_text(policy)
    used: list[str] = []

    def certify(name: str) -> None:
        used.append(name)
        machine.process.environment[VARIABLE] = where[name]

    route, store, context = Site.route, Site.store, Site.context

    async def certified_route(site: Site) -> None:
        certify(EDGE)
        await route(site)

    async def certified_store(site: Site, domain: int) -> None:
        certify(STORE)
        await store(site, domain)

    def certified_context(site: Site, domain: int) -> Context:
        certify(NAMES[domain])
        return context(site, domain)

    monkeypatch.setattr(Site, "route", certified_route)
    monkeypatch.setattr(Site, "store", certified_store)
    monkeypatch.setattr(Site, "context", certified_context)
    assert play("tcp", home, lambda _site, _found: None) == MESSAGES
    assert {*used} == {*where}
    assert not [record for record in caplog.records if "[policy]" in record.getMessage()]


@pytest.mark.parametrize(
    ("who", "message", "passes"),
    [
        ("shop", ASKED, True),
        ("desk", ASKED, False),
        ("shop", attrs.evolve(ASKED, topic="quotes"), False),
        ("desk", attrs.evolve(ASKED, role=Role.RECEIVER), True),
        ("store", StableAck(0, 7, 0, 0), True),
        ("shop", StableAck(0, 7, 0, 0), False),
    ],
)
def test_a_portal_lets_in_what_its_sender_may_say(
    who: str, message: Message, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the other domain only the router has a certificate."""
    policy = Policy.parse(POLICY_OF_ALL.encode())
    monkeypatch.setattr(Origins, "policy", policy)
    portal = SimpleNamespace(pool=SimpleNamespace(origins=Origins()))
    peer = Peer(lambda *_: None, lambda _: None)
    peer.origin = Origin("192.0.2.1", (f"commonName:{who}",))
    way = Endpoint.of("2:192.0.2.2:1"), Endpoint.of("1:192.0.2.1:1"), Stream(stream_id=1, sqn=1, ctxinst=bytes(8))
    octets = routed(codec.encode(message), *way)
    assert PortalContext._may_pass(cast("PortalContext", portal), octets, peer) is passes


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
