"""Domains and routes over services: routers tell them, services keep and pass them on, contexts learn them."""

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.resolution.srs import routers as module
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.events import Reaches
from stablecast.transports.resolution.srs.settings import CLIENT_DEFAULTS, ServiceConfig
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource, RemoveSource
from stablecast.transports.resolution.udp.settings import DomainOptions
from stablecast.transports.wire import srs
from tests.transports.resolution.srs_domain import DEFAULTS, SECOND_SRS, SRS, SrsDomain

PORT, OTHER_PORT = "10.0.0.9:14392", "10.0.0.9:14393"
PORTAL = attrs.evolve(CLIENT_DEFAULTS, router=True, domains=DomainOptions(number=7))


def domain(config: ServiceConfig = DEFAULTS) -> SrsDomain:
    """A service, a context, and a router that reaches two domains."""
    played = SrsDomain()
    played.service(config=config)
    played.context("desk")
    played.context("router", config=PORTAL)
    played.feed("router", Reaches((2, 3), PORT))
    return played


def known(context: SrsContext) -> tuple[int, dict[int, str]]:
    return context.domains.number, context.domains.routes


@pytest.mark.rows("R-008", "R-252", "R-251")
def test_contexts_learn_what_routers_tell_before_and_after_they_come() -> None:
    played = domain()
    late = played.context("late")
    assert known(played.contexts["desk"]) == known(late) == (7, {2: PORT, 3: PORT})
    played.feed("router", Reaches((3,), OTHER_PORT))
    assert known(late) == (7, {3: OTHER_PORT})
    played.feed("router", Reaches((), OTHER_PORT))
    assert known(late) == (7, {})


@pytest.mark.rows("R-010")
def test_routes_of_a_lost_router_end_after_their_lifetime() -> None:
    played = domain()
    played.stop("router")
    played.run(29 * SECOND)
    assert known(played.contexts["desk"]) == (7, {2: PORT, 3: PORT})
    assert known(played.context("late")) == (7, {2: PORT, 3: PORT})
    played.run(31 * SECOND)
    assert known(played.contexts["desk"]) == (7, {})
    assert played.services[SRS].routers.domain == 0


@pytest.mark.rows("R-010")
def test_routes_stay_for_ever_with_a_lifetime_of_zero() -> None:
    played = domain(ServiceConfig(route_lifetime_ns=0))
    played.stop("router")
    played.run(1_000 * SECOND)
    assert known(played.contexts["desk"]) == (7, {2: PORT, 3: PORT})


def test_a_router_that_comes_back_keeps_its_routes() -> None:
    played = domain()
    played.leave("router")
    played.run(16 * SECOND)
    played.back("router")
    played.run(100 * SECOND)
    assert known(played.contexts["desk"]) == (7, {2: PORT, 3: PORT})


def test_a_lost_router_takes_no_route_from_the_next_one_at_its_port() -> None:
    """A router that was killed is back at once as another one, and what it told before ends half a minute later."""
    played = domain()
    played.stop("router")
    played.context("next", config=PORTAL)
    played.feed("next", Reaches((2,), PORT))
    played.run(60 * SECOND)
    assert known(played.contexts["desk"]) == known(played.context("late")) == (7, {2: PORT})


@pytest.mark.parametrize("withdrawn", [False, True])
def test_the_next_router_repeats_what_a_lost_one_still_seems_to_repeat(withdrawn: bool) -> None:
    """The host of the first lost its power: its connection ends only after a silence. Nobody says anything again."""
    played = domain()
    played.feed("desk", AddReceiver("orders"))
    repeated = named(SourceRecord("10.0.0.1:14371", 7, 1, "10.0.0.1:14391", instance=b"instance")).origin
    played.feed(
        "router", AddSource("orders", "10.0.2.1:14371", 70, 11, "", persistent=False, origin=repeated, cost=1, hops=1)
    )
    assert played.discovered("desk") == [("orders", 11)]
    played.leave("router")
    played.context("next", config=PORTAL)
    played.feed(
        "next", AddSource("orders", "10.0.2.1:14372", 71, 12, "", persistent=False, origin=repeated, cost=1, hops=1)
    )
    if withdrawn:
        played.feed("next", RemoveSource(71, 12))
    assert played.discovered("desk") == []
    played.run(60 * SECOND)
    assert played.discovered("desk") == ([] if withdrawn else [("orders", 12)])
    assert not played.services[SRS].waiting


@pytest.mark.parametrize(("peer", "heard"), [("1.2.3.4:", [11, 1]), ("1.2.3.5:", [11])])
def test_a_source_takes_its_name_from_a_router_at_its_own_host_only(peer: str, heard: list[int]) -> None:
    """A router that started again repeats here what its predecessor's proxy in another domain still seems to send."""
    played = domain()
    played.feed("desk", AddReceiver("orders"))
    own = named(SourceRecord("1.2.3.4:14371", 7, 1, "1.2.3.4:14391", instance=b"instance")).origin
    played.feed("router", AddSource("orders", "10.0.2.1:1", 70, 11, "", persistent=False, origin=own, cost=2, hops=2))
    played.context(peer)
    played.feed(peer, AddSource("orders", "1.2.3.4:14371", 7, 1, "1.2.3.4:14391", persistent=False, origin=own))
    assert [index for _, index in played.discovered("desk")] == heard


def test_a_service_without_the_routes_of_a_former_one_ends_them() -> None:
    played = domain()
    played.stop("router")
    played.service()
    played.run(60 * SECOND)
    assert known(played.contexts["desk"]) == (7, {})


def test_a_route_that_another_service_tells_stays() -> None:
    played = SrsDomain()
    played.service()
    played.service(SECOND_SRS)
    played.context("desk", SRS, SECOND_SRS)
    played.context("router", SRS, SECOND_SRS, config=PORTAL)
    played.feed("router", Reaches((2,), PORT))
    played.service(SRS)
    played.stop("router")
    played.run(20 * SECOND)
    assert known(played.contexts["desk"]) == (7, {2: PORT})
    played.run(60 * SECOND)
    assert known(played.contexts["desk"]) == (7, {})


@pytest.mark.rows("R-009")
def test_a_second_number_is_counted_and_the_first_stays() -> None:
    played = domain()
    played.context("wrong", config=attrs.evolve(PORTAL, domains=DomainOptions(number=8)))
    assert played.services[SRS].routers.mismatched == 1
    assert known(played.context("late"))[0] == 7
    assert [note for note in played.notes if "another number" in note]


def test_only_routers_tell_domains_and_routes() -> None:
    played = domain()
    route = srs.RouteInfo(domains=(9,), address="10.0.0.66", port=1, instance=b"stranger")
    stranger = played.contexts["desk"]
    stranger._tell(srs.encode(route))
    stranger._tell(srs.encode(srs.DomainInfo(domain=9, instance=b"stranger")))
    played.feed("desk")
    played.work.append("desk")
    played._settle()
    assert known(played.context("late")) == (7, {2: PORT, 3: PORT})
    assert played.services[SRS].counted.ignored == 2


def test_what_routers_tell_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROUTED_DOMAINS", 3)
    monkeypatch.setattr(module, "MAX_ROUTERS", 1)
    played = domain()
    played.context("second", config=PORTAL)
    assert played.services[SRS].counted.refused
    refused = played.services[SRS].counted.refused
    played.feed("router", Reaches((2, 3, 4, 5), PORT))
    assert played.services[SRS].counted.refused > refused


def test_more_domains_than_one_record_has_are_told_in_several() -> None:
    played = SrsDomain()
    played.service()
    played.context("router", config=PORTAL)
    played.feed("router", Reaches(tuple(range(8, 608)), PORT))
    assert len(known(played.context("desk"))[1]) == 600
