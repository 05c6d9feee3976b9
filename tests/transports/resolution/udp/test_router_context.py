"""What the context of a router's portal hears and says, and what other contexts tell it."""

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.records import ENDED_TTL
from stablecast.transports.resolution.udp.carriers import MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import Overheard
from stablecast.transports.resolution.udp.inputs import (
    AddPattern,
    AddReceiver,
    AddSource,
    RemovePattern,
    RemoveReceiver,
    RemoveSource,
    Say,
)
from stablecast.transports.resolution.udp.settings import AdvertiseOptions, ResolutionConfig
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.lbmr_extended import LEAVE, USE, DomainRoute, Management, TopicRecord
from tests.transports.resolution.domain import Domain

ROUTER, A, B = "10.0.0.9:14402", "10.0.0.1:14402", "10.0.0.2:14402"
PATTERN = lbmr.WildcardQuery(lbmr.PatternLanguage.PCRE, "^ord")


@pytest.fixture
def domain() -> Domain:
    """Two contexts and a router's portal in domain 7."""
    domain = Domain()
    domain.member(A)
    domain.member(B)
    domain.nodes[ROUTER] = ResolutionContext.create(b"portal-7", MulticastGroup(), router=True, domain=7)
    domain.feed(ROUTER, Say(()))
    return domain


def overheard(domain: Domain) -> list[object]:
    return [effect.packet for _, _, effect in domain.others if isinstance(effect, Overheard)]


def records(domain: Domain) -> list[tuple[int, TopicRecord]]:
    """The records of topic management that the router heard, with the type of their sender."""
    found = [packet for packet in overheard(domain) if isinstance(packet, lbmr_extended.Packet)]
    return [
        (kind.source_type, record)
        for packet in found
        if isinstance(packet.body, Management)
        for record in packet.body.records
        for kind in packet.options
        if isinstance(kind, lbmr.SourceType)
    ]


def ask(domain: Domain, *queries: lbmr.Query) -> None:
    asked = tuple(TopicRecord.of(query, USE) for query in queries)
    domain.feed(ROUTER, Say((Management(records=asked),)))
    domain.run(domain.now)


def test_a_portal_hears_all_queries_and_advertisements(domain: Domain) -> None:
    domain.feed(A, AddReceiver("orders"))
    domain.feed(B, AddSource("trades", "10.0.0.2:14371", 7, 1, "10.0.0.2:14391", persistent=False))
    domain.run(SECOND)
    packets = [packet for packet in overheard(domain) if isinstance(packet, lbmr.Packet)]
    assert lbmr.TopicQuery("orders") in [query for packet in packets for query in packet.queries]
    assert "trades" in [tir.name for packet in packets for tir in packet.advertisements]


def test_a_portal_does_not_find_the_sources_that_it_advertises(domain: Domain) -> None:
    domain.feed(ROUTER, AddReceiver("orders"))
    domain.feed(ROUTER, AddSource("orders", "10.0.0.9:14371", 7, 1, "", persistent=False))
    domain.run(SECOND)
    assert not [found for found in domain.found if found[1] == ROUTER]


def test_its_packets_say_that_it_is_a_router_and_which_domain_this_is(domain: Domain) -> None:
    domain.feed(A, AddReceiver("orders"))
    ask(domain, lbmr.TopicQuery("orders"))
    context = domain.nodes[A]
    assert isinstance(context, ResolutionContext)
    assert (context.domain, context.routed) == (7, True)
    told = [lbmr_extended.decode(data) for _, sender, _, data in domain.sent if sender == ROUTER]
    assert lbmr.SourceType(source_type=lbmr.SourceType.GATEWAY) in told[0].options
    assert lbmr.LocalDomain(domain=7) in told[0].options


@pytest.mark.rows("R-030")
def test_contexts_answer_what_they_use(domain: Domain) -> None:
    domain.feed(A, AddReceiver("orders"))
    domain.feed(B, AddPattern("^ord"))
    ask(domain, lbmr.TopicQuery("orders"), PATTERN, lbmr.TopicQuery("trades"))
    answers = [record for kind, record in records(domain) if kind == lbmr.SourceType.APPLICATION]
    assert answers == [TopicRecord.of(lbmr.TopicQuery("orders"), USE).answer, TopicRecord.of(PATTERN, USE).answer]
    assert [answer.query for answer in answers] == [lbmr.TopicQuery("orders"), PATTERN]


@pytest.mark.rows("R-038")
def test_a_receiver_that_is_deleted_takes_leave_where_a_router_is(domain: Domain) -> None:
    domain.feed(A, AddReceiver("orders"))
    domain.feed(A, AddPattern("^ord"))
    ask(domain)
    ask(domain, lbmr.TopicQuery("other"))
    domain.feed(A, RemoveReceiver("orders"))
    domain.feed(A, RemovePattern("^ord"))
    domain.feed(A, RemoveReceiver("never wanted"))
    domain.run(domain.now)
    assert [record for _, record in records(domain)] == [
        TopicRecord.of(lbmr.TopicQuery("orders"), LEAVE),
        TopicRecord.of(PATTERN, LEAVE),
    ]


@pytest.mark.rows("R-038")
def test_nobody_takes_leave_where_no_router_is() -> None:
    domain = Domain()
    domain.member(A)
    domain.feed(A, AddReceiver("orders"))
    domain.feed(A, RemoveReceiver("orders"))
    domain.run(SECOND)
    assert not [data for *_, data in domain.sent if lbmr_extended.is_extended(data)]


def test_a_portal_hears_the_routes_of_another_router(domain: Domain) -> None:
    domain.nodes[A] = ResolutionContext.create(b"portal-8", MulticastGroup(), router=True, domain=8)
    route = DomainRoute(count=1, address="10.0.0.1", port=14391, length=20, domains=(8,))
    domain.feed(A, Say((route,)))
    domain.run(domain.now)
    assert [packet.body for packet in overheard(domain) if isinstance(packet, lbmr_extended.Packet)] == [route]


@pytest.mark.rows("R-061")
def test_the_end_of_a_proxy_is_told_three_times(domain: Domain) -> None:
    """R-061: one lost datagram must not make receivers wait."""
    at_end = AdvertiseOptions(at_end=True)
    proxy = AddSource("orders", "10.0.0.9:14371", 7, 1, "", persistent=False, options=at_end)
    for sender in (ROUTER, A):
        domain.feed(sender, proxy)
    domain.run(SECOND)
    domain.sent.clear()
    for sender in (ROUTER, A):
        domain.feed(sender, RemoveSource(7, 1))
    domain.run(5 * SECOND)
    finals = {ROUTER: list[int](), A: list[int]()}
    for at, sender, _, data in domain.sent:
        packet = lbmr.decode(data)
        if isinstance(packet, lbmr.Packet) and any(tir.ttl == ENDED_TTL for tir in packet.advertisements):
            finals[sender].append((at - SECOND) // MILLISECOND)
    assert finals == {ROUTER: [0, 100, 200], A: [0]}


@pytest.mark.rows("R-114")
def test_queries_of_a_portal_that_starts_are_limited() -> None:
    """R-114: a router that joins a large site looks for thousands of topics at once."""
    domain = Domain()
    domain.nodes[ROUTER] = ResolutionContext.create(b"portal-7", MulticastGroup(), router=True, domain=7)
    for number in range(3_000):
        domain.feed(ROUTER, AddReceiver(f"topic {number}"))
    domain.run(SECOND - 1)
    limit = ResolutionConfig().limits.initial_queries
    asked = [query for *_, data in domain.sent for query in lbmr.decode(data).queries]  # type: ignore[union-attr]
    assert 0 < len(asked) <= limit.records
    domain.run(10 * SECOND)
    assert len({query for *_, data in domain.sent for query in lbmr.decode(data).queries}) == 3_000  # type: ignore[union-attr]
