"""The interest of contexts, which services tell to routers only. Row R-040."""

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.settings import CLIENT_DEFAULTS
from stablecast.transports.resolution.srs.told_interest import ToldInterest
from stablecast.transports.resolution.udp.inputs import AddPattern, AddReceiver, RemovePattern, RemoveReceiver
from stablecast.transports.resolution.udp.settings import DomainOptions
from stablecast.transports.wire.lbmr import PatternLanguage, Query, TopicQuery, WildcardQuery
from tests.transports.resolution.srs_domain import DEFAULTS, SECOND_SRS, SRS, SrsDomain

PORTAL = attrs.evolve(CLIENT_DEFAULTS, router=True, domains=DomainOptions(number=7))
ORDERS, PATTERN = TopicQuery("orders"), WildcardQuery(PatternLanguage.PCRE, "^ord")


def wanted(context: SrsContext) -> set[Query]:
    """What a router was told, as far as it did not end."""
    return set(context.interest.holders)


def domain() -> SrsDomain:
    played = SrsDomain()
    played.service()
    played.context("desk")
    played.context("shop")
    played.feed("desk", AddReceiver("orders"))
    played.context("router", config=PORTAL)
    return played


@pytest.mark.rows("R-040")
def test_a_router_is_told_what_contexts_want_before_and_after_it_comes() -> None:
    played = domain()
    router = played.contexts["router"]
    assert wanted(router) == {ORDERS}
    played.feed("shop", AddPattern("^ord"))
    played.feed("shop", AddReceiver("orders"))
    assert wanted(router) == {ORDERS, PATTERN}
    played.feed("desk", RemoveReceiver("orders"))
    played.feed("shop", RemovePattern("^ord"))
    assert wanted(router) == {ORDERS}
    played.feed("shop", RemoveReceiver("orders"))
    assert wanted(router) == set()


@pytest.mark.rows("R-024")
def test_what_routers_want_is_no_interest() -> None:
    """R-024."""
    played = domain()
    played.context("route2", config=PORTAL)
    played.feed("route2", AddReceiver("trades"))
    played.feed("router", AddReceiver("orders"))
    played.feed("desk", RemoveReceiver("orders"))
    assert wanted(played.contexts["router"]) == set()


def test_contexts_are_told_nothing_of_the_interest_of_others() -> None:
    played = domain()
    played.feed("shop", AddPattern("^ord"))
    assert wanted(played.contexts["desk"]) == set()


def test_the_interest_of_a_lost_context_ends_with_its_lifetime() -> None:
    played = domain()
    played.stop("desk")
    assert wanted(played.contexts["router"]) == {ORDERS}
    played.run(played.now + DEFAULTS.interest_lifetime_ns + SECOND)
    assert wanted(played.contexts["router"]) == set()


def test_a_service_that_begins_anew_ends_what_nobody_wants_any_more() -> None:
    played = domain()
    played.stop("desk")
    played.service()
    played.run(played.now + 60 * SECOND)
    assert wanted(played.contexts["router"]) == set()


def test_interest_lasts_while_one_service_tells_it() -> None:
    told = ToldInterest()
    assert told.put(ORDERS, 0, 1)
    assert not told.put(ORDERS, 1, 2)
    assert not told.release(ORDERS, 0)
    assert not told.release(ORDERS, 0)
    assert told.release(ORDERS, 1)
    told.put(ORDERS, 0, 1)
    told.put(PATTERN, 0, 3)
    assert told.sweep(0, 3) == [ORDERS]


def test_two_services_are_one_domain() -> None:
    played = SrsDomain()
    played.service()
    played.service(SECOND_SRS)
    played.context("desk", SRS)
    played.context("router", SRS, SECOND_SRS, config=PORTAL)
    played.feed("desk", AddReceiver("orders"))
    assert wanted(played.contexts["router"]) == {ORDERS}
