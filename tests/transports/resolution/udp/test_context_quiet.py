"""One context: quiescence and its end, names of stores, the domain."""

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import NameFound, Remark, SendDatagram
from stablecast.transports.resolution.udp.inputs import (
    AddName,
    AddReceiver,
    AddSource,
    AskName,
    DatagramArrived,
    Resolved,
    Unresolved,
    Wake,
)
from stablecast.transports.resolution.udp.presets import DOCUMENTED
from stablecast.transports.wire import lbmr
from tests.transports.resolution.domain import RELAY, Domain
from tests.transports.resolution.virtual import MS

A, B = "10.0.0.1:14402", "10.0.0.2:14402"
ORDERS = AddSource("orders", "10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True)


def pair() -> Domain:
    domain = Domain()
    domain.relay()
    domain.context(A)
    domain.context(B)
    return domain


def test_a_source_that_was_found_and_refuses_is_named() -> None:
    """Its address may be translated without a forwarder, or its port closed: it did answer."""
    domain = Domain()
    domain.relay()
    domain.context(A)
    context = domain.context(B)
    domain.feed(A, ORDERS)
    domain.feed(B, AddReceiver("orders"))
    domain.run(100 * MS)
    domain.down = {RELAY}
    domain.feed(B, Unresolved("orders"))
    assert context.why("orders") == "the source at 10.0.0.1:14371 was found, and refuses connections or is gone"
    domain.feed(B, Resolved("orders"))
    domain.feed(B, Unresolved("orders"))
    assert "was found" not in context.why("orders")


def test_why_a_receiver_is_not_resolved() -> None:
    domain = Domain()
    domain.relay()
    context = domain.context(B, config=DOCUMENTED)
    domain.down = {RELAY}
    domain.feed(B, AddReceiver("orders"))
    domain.run(100 * MS)
    assert context.why("orders") == f"no relay answers at {RELAY}"
    domain.down = set()
    domain.run(2 * SECOND)
    assert context.why("orders") == "13 queries, no source answered"
    domain.run(100 * SECOND)
    assert context.why("orders") == "resolution is quiescent: queries have stopped"
    domain.context(A)
    domain.feed(A, ORDERS)
    domain.run(101 * SECOND)
    assert context.why("orders") == "1 sources are known, none could be joined"
    assert context.counters()["unresolved"] == 1
    domain.feed(B, Resolved("orders"))
    assert context.counters()["unresolved"] == 0


def quiet_pair() -> Domain:
    """Return a source and a receiver that were separated for longer than the documented phases last."""
    domain = Domain()
    domain.relay()
    for address in (A, B):
        domain.context(address, config=DOCUMENTED)
    domain.down = {RELAY}
    domain.feed(A, ORDERS)
    domain.feed(B, AddReceiver("orders"))
    domain.run(100 * SECOND)
    domain.down = set()
    domain.run(200 * SECOND)
    assert domain.found == []
    return domain


@pytest.mark.rows("T-012")
def test_quiet_is_not_dead_a_request_wakes_it() -> None:
    """T26: deaf forever, until another context requests its records."""
    flags = lbmr.ResolutionRequest
    domain = quiet_pair()
    domain.feed(B, Wake(flags.ADVERTISEMENTS, SECOND, 2 * SECOND))
    domain.run(210 * SECOND)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]
    requests = [now for now, at, _, data in domain.sent if at == B and data[:2] == bytes([0x1F, 4])]
    assert requests == [200 * SECOND, 201 * SECOND, 202 * SECOND]
    domain = quiet_pair()
    domain.feed(A, Wake(flags.QUERIES | flags.PATTERN_QUERIES | flags.NAMES | flags.NAME_QUERIES, 0, 0))
    domain.run(210 * SECOND)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]


@pytest.mark.rows("T-116")
@pytest.mark.parametrize("event", [AddReceiver("orders"), Unresolved("orders")])
def test_quiet_is_not_dead_a_new_object_or_a_loss_wakes_it(event: AddReceiver | Unresolved) -> None:
    """T26."""
    domain = quiet_pair()
    domain.feed(B, event)
    domain.run(201 * SECOND)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]


@pytest.mark.rows("T-201", "T-204", "T-206")
def test_stores_are_found_by_name() -> None:
    domain = pair()
    domain.feed(B, AskName("store-A"))
    domain.run(SECOND)
    domain.feed(A, AddName("store-A", "10.0.0.1:14567"))
    domain.run(10 * SECOND)
    found = [(now, at, effect) for now, at, effect in domain.others if isinstance(effect, NameFound)]
    assert found == [(SECOND, B, NameFound("store-A", "10.0.0.1:14567"))]


def told_by(source_type: int, domain: int) -> bytes:
    trailer = lbmr.standard_options(b"router.1", source_type, domain=domain)
    return lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, options=(*trailer, lbmr.UnknownOption(200, b"xx"))))


@pytest.mark.rows("T-203")
def test_the_domain_is_learnt_from_routers() -> None:
    """And it is in the trailer of sent packets. The first number stays."""
    context = ResolutionContext.over_relays(b"instance", [RELAY])
    context.receive(AddReceiver("orders"), 0)
    for source_type, domain in ((0, 9), (1, 0), (1, 7), (1, 7)):
        context.receive(DatagramArrived(told_by(source_type, domain), RELAY), 0)
    assert context.domain == 7
    context.take_effects()
    context.receive(DatagramArrived(told_by(1, 8), RELAY), 0)
    (remark,) = context.take_effects()
    assert isinstance(remark, Remark)
    assert remark.warning
    context.handle_timeout(500 * MS)
    sent = [lbmr.decode(effect.data) for effect in context.take_effects() if isinstance(effect, SendDatagram)]
    assert {packet.options[:4] for packet in sent} == {lbmr.standard_options(b"instance", domain=7)}
