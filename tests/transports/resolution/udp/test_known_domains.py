"""What a context learns of domains: its own number, whom it believes, and the routes to others."""

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import (
    DomainLearnt,
    Remark,
    RouteLearnt,
    RouteLost,
    SendDatagram,
)
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource, DatagramArrived
from stablecast.transports.resolution.udp.known_domains import MAX_REMARKS, MAX_ROUTES, ROUTE_LIFETIME, KnownDomains
from stablecast.transports.resolution.udp.settings import SAFE, DomainOptions, ResolutionConfig
from stablecast.transports.wire import lbmr, lbmr_extended

RELAY = "10.0.0.9:15380"
ROUTER = "10.0.0.8:14392"
NEW_ROUTER = "10.0.0.8:14393"


def news(known: KnownDomains) -> list[object]:
    return [effect for effect in known.take_effects() if not isinstance(effect, Remark)]


@pytest.mark.rows("R-003", "R-005")
def test_by_default_only_routers_are_believed() -> None:
    known = KnownDomains()
    known.heard(3, False, 0)
    assert known.told == 0
    known.heard(7, True, 0)
    assert news(known) == [DomainLearnt(7)]
    assert known.told == 7
    assert known.next_timeout() is None


def test_the_first_number_stays_and_others_are_reported_once() -> None:
    known = KnownDomains()
    known.heard(7, True, 0)
    known.take_effects()
    for _ in range(2):
        known.heard(8, True, 0)
    (remark,) = known.take_effects()
    assert isinstance(remark, Remark)
    assert remark.warning
    for number in range(9, 100):
        known.heard(number, True, 0)
    assert len(known.take_effects()) == MAX_REMARKS - 1
    assert known.number == 7


def test_a_number_that_was_given_counts_before_all_others() -> None:
    known = KnownDomains(DomainOptions(number=5))
    known.heard(7, True, 0)
    assert known.told == 5
    assert news(known) == [DomainLearnt(5)]


@pytest.mark.rows("R-005", "R-006")
def test_a_number_is_learnt_from_anybody() -> None:
    known = KnownDomains(DomainOptions(handed_on=-1))
    known.heard(7, False, SECOND)
    assert news(known) == [DomainLearnt(7)]
    assert (known.told, known.next_timeout()) == (7, None)
    known.heard(8, True, 2 * SECOND)
    assert known.told == 7


@pytest.mark.rows("R-005", "R-007")
def test_a_number_is_handed_on_for_a_while_after_the_last_router() -> None:
    known = KnownDomains(DomainOptions(handed_on=5 * SECOND))
    known.heard(7, False, SECOND)
    assert news(known) == [DomainLearnt(7)]
    assert (known.told, known.next_timeout()) == (0, None)
    known.heard(7, True, 4 * SECOND)
    assert (known.told, known.next_timeout()) == (7, 9 * SECOND)
    known.handle_timeout(9 * SECOND - 1)
    assert known.told == 7
    known.handle_timeout(9 * SECOND)
    assert (known.told, known.number, known.next_timeout()) == (0, 7, None)
    known.heard(7, True, 20 * SECOND)
    assert known.told == 7
    assert [type(effect) for effect in known.take_effects()] == [Remark, Remark]


def test_routes_are_repeated_replaced_and_lost() -> None:
    known = KnownDomains(DomainOptions(number=1))
    known.take_effects()
    known.route((0, 1, 2, 3), ROUTER, 0)
    known.route((2,), ROUTER, SECOND)
    assert news(known) == [RouteLearnt(2, ROUTER), RouteLearnt(3, ROUTER)]
    known.route((2,), NEW_ROUTER, 2 * SECOND)
    known.lose((2,), ROUTER)
    assert news(known) == [RouteLearnt(2, NEW_ROUTER)]
    assert known.next_timeout() == ROUTE_LIFETIME
    known.handle_timeout(ROUTE_LIFETIME)
    assert news(known) == [RouteLost(3)]
    assert known.next_timeout() == 2 * SECOND + ROUTE_LIFETIME
    known.handle_timeout(2 * SECOND + ROUTE_LIFETIME)
    assert news(known) == [RouteLost(2)]
    assert known.next_timeout() is None


@pytest.mark.rows("R-096")
def test_a_new_route_and_another_way_are_logged() -> None:
    known = KnownDomains()
    for address in (ROUTER, ROUTER, NEW_ROUTER):
        known.route((2,), address, 0)
    first, second = (one.text for one in known.take_effects() if isinstance(one, Remark))
    assert ROUTER in first
    assert ROUTER in second
    assert NEW_ROUTER in second


def test_a_route_without_a_time_stays_until_its_end() -> None:
    known = KnownDomains()
    known.route((2,), ROUTER, 0)
    known.route((2,), ROUTER, None)
    assert known.next_timeout() is None
    known.lose((2, 9), ROUTER)
    assert news(known) == [RouteLearnt(2, ROUTER), RouteLost(2)]


def test_the_routes_of_a_context_are_bounded() -> None:
    known = KnownDomains()
    known.route(range(1, MAX_ROUTES + 9), ROUTER, 0)
    assert len(known.routes) == MAX_ROUTES
    assert len(news(known)) == MAX_ROUTES
    assert len(known.take_effects()) <= MAX_REMARKS


def routes(source_type: int, *domains: int) -> DatagramArrived:
    host, _, port = ROUTER.rpartition(":")
    body = lbmr_extended.DomainRoute(
        count=len(domains), address=host, port=int(port), length=16 + 4 * len(domains), domains=domains
    )
    trailer = lbmr.standard_options(b"router.1", source_type, domain=7)
    return DatagramArrived(lbmr_extended.encode(lbmr_extended.Packet(body, trailer)), RELAY)


def test_a_context_learns_routes_from_routers_only() -> None:
    context = ResolutionContext.over_relays(b"instance", [RELAY])
    context.receive(AddReceiver("orders"), 0)
    context.take_effects()
    context.receive(routes(lbmr.SourceType.APPLICATION, 2), 0)
    assert [one for one in context.take_effects() if isinstance(one, RouteLearnt | DomainLearnt)] == []
    context.receive(routes(lbmr.SourceType.GATEWAY, 2, 3), 0)
    found = [one for one in context.take_effects() if not isinstance(one, Remark | SendDatagram)]
    assert found == [DomainLearnt(7), RouteLearnt(2, ROUTER), RouteLearnt(3, ROUTER)]
    assert context.next_timeout() is not None
    context.handle_timeout(ROUTE_LIFETIME)
    assert {RouteLost(2), RouteLost(3)} <= set(context.take_effects())


def test_a_context_with_a_number_of_its_own_sends_it() -> None:
    config = ResolutionConfig(SAFE.advertise, domains=DomainOptions(number=5))
    context = ResolutionContext.over_relays(b"instance", [RELAY], config)
    context.receive(AddReceiver("orders"), 0)
    context.handle_timeout(0)
    effects = context.take_effects()
    assert DomainLearnt(5) in effects
    sent = [lbmr.decode(effect.data) for effect in effects if isinstance(effect, SendDatagram)]
    assert {option.domain for packet in sent for option in packet.options if isinstance(option, lbmr.LocalDomain)} == {
        5
    }


def test_the_sources_of_a_context_name_its_domain() -> None:
    """Not those of a router, which repeat sources of others."""
    config = ResolutionConfig(SAFE.advertise, domains=DomainOptions(number=5))
    own = AddSource("orders", "10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True)
    for source, named in ((own, [5]), (attrs.evolve(own, origin=bytes(32)), []), (attrs.evolve(own, domain=6), [6])):
        context = ResolutionContext.over_relays(b"instance", [RELAY], config)
        context.receive(source, 0)
        context.handle_timeout(0)
        sent = [lbmr.decode(effect.data) for effect in context.take_effects() if isinstance(effect, SendDatagram)]
        (tir, *_) = [tir for packet in sent if isinstance(packet, lbmr.Packet) for tir in packet.advertisements]
        assert [option.domain for option in tir.options if isinstance(option, lbmr.DomainId)] == named
