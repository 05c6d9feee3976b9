"""The whole machine of a router."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import SourceInfo
from stablecast.transports import codec
from stablecast.transports.codec.fragments import encode_pieces
from stablecast.transports.codec.lbttcp import Run, build
from stablecast.transports.reliable import high_water_marks
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.access import AccessEntry, Condition, Subject
from stablecast.transports.routing.forwarding import UnicastDrop, way_of
from stablecast.transports.routing.portals import EVERYTHING, Drop, PortalSettings, Standing
from stablecast.transports.routing.router import Router
from stablecast.transports.routing.sources import AT_ONCE
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.lbmc import Message
from tests.transports.routing.bench import (
    INDEX,
    NAMES,
    ORDERS,
    ORIGIN,
    PATTERN,
    SESSION,
    SOURCE,
    Bench,
    info,
    items_of,
    packet,
    record,
    run,
    uses,
)
from tests.transports.routing.test_forwarding import sent


def numbers(items: list[Run | Message]) -> list[int]:
    return [item.first + one for item in items if isinstance(item, Run) for one in range(item.count)]


@pytest.mark.rows("R-030", "R-095", "R-110", "R-255")
def test_a_portal_begins_with_requests_and_routes() -> None:
    """R-030, R-095."""
    bench = Bench(Router.create([PortalSettings("a", 1, (NAMES[0],)), PortalSettings("b", 2, (NAMES[1],))], 0))
    bench.run(3 * SECOND)
    assert bench.of(fx.Wake) == [fx.Wake(portal, EVERYTHING, SECOND, 10 * SECOND) for portal in (0, 1)]
    assert fx.Announce(0, (2,)) in bench.effects
    assert fx.Announce(1, (1,)) in bench.effects
    bench.effects.clear()
    bench.run(10 * SECOND)
    assert len(bench.of(fx.Announce)) == 20


@pytest.mark.rows("R-020")
def test_without_interest_nothing_is_joined() -> None:
    """R-020."""
    bench = Bench.begun()
    assert bench.feed(ev.SourceFound(0, "orders", SOURCE)) == []
    assert not bench.router.table.sources


@pytest.mark.rows("R-021", "R-022", "R-026")
def test_interest_of_a_domain_is_looked_for_in_all_others() -> None:
    """R-021, R-022, R-026."""
    bench = Bench.begun(3)
    assert bench.feed(ev.Overheard(1, packet(ORDERS))) == [fx.Want(0, ORDERS, True), fx.Want(2, ORDERS, True)]
    assert bench.feed(ev.Overheard(1, packet(ORDERS))) == []
    assert bench.feed(ev.Overheard(2, packet(PATTERN))) == [fx.Want(0, PATTERN, True), fx.Want(1, PATTERN, True)]


@pytest.mark.rows("R-050", "R-051", "R-058")
def test_a_source_is_joined_once_and_repeated_where_it_is_wanted() -> None:
    """R-050, R-051, R-058: the cost of the entry is added, and the domain is that of the source."""
    bench = Bench.begun(3)
    bench.feed(*(ev.Overheard(portal, packet(ORDERS)) for portal in range(3)), ev.Overheard(2, packet(PATTERN)))
    found = bench.feed(ev.SourceFound(0, "orders", SOURCE))
    told = attrs.evolve(SOURCE, address="", session_id=0, index=0, cost=1, hops=1, domain=1)
    assert found == [
        fx.OpenProxy(1, ORIGIN, "orders", told),
        fx.OpenProxy(2, ORIGIN, "orders", told),
        fx.JoinSource(0, ORIGIN, "orders", SOURCE),
    ]
    assert bench.feed(ev.SourceFound(0, "orders", SOURCE)) == []


def test_a_source_is_not_repeated_where_it_came_in() -> None:
    """Nor in its own domain: a service knows what a router that is gone repeated in another one."""
    bench = Bench.begun(3)
    bench.feed(*(ev.Overheard(portal, packet(ORDERS)) for portal in range(3)))
    astray = attrs.evolve(SOURCE, address="10.0.2.9:14371", session_id=77, index=7, cost=1, hops=1, domain=1)
    found = bench.feed(ev.SourceFound(1, "orders", astray))
    assert [one.portal for one in found if isinstance(one, fx.OpenProxy)] == [2]


def test_the_proxy_itself_is_no_source() -> None:
    bench = Bench.begun().flowing()
    bench.feed(ev.Overheard(0, packet(ORDERS)))
    again = attrs.evolve(SOURCE, address="10.0.2.9:14371", session_id=SESSION, index=INDEX, cost=1, hops=1)
    assert bench.feed(ev.SourceFound(1, "orders", again)) == []
    assert fx.JoinSource(1, ORIGIN, "orders", again) not in bench.feed(ev.StreamEnded(ORIGIN))


@pytest.mark.rows("R-053")
def test_a_source_without_an_identity_is_never_repeated() -> None:
    """R-053."""
    bench = Bench.begun()
    bench.feed(ev.Overheard(1, packet(ORDERS)))
    (remark,) = bench.feed(ev.SourceFound(0, "orders", attrs.evolve(SOURCE, origin=b"")))
    assert isinstance(remark, Remark)
    assert remark.warning
    assert bench.router.portals[0].counted.unidentified == 1


@pytest.mark.rows("R-056", "R-057")
def test_messages_keep_numbers_and_lengths() -> None:
    """R-056, R-057."""
    bench = Bench.begun().flowing()
    came = run(41, 20, size=700)
    (forward,) = bench.feed(ev.ItemsArrived(ORIGIN, (came, run(1, 5, index=77))))
    assert isinstance(forward, fx.Forward)
    assert forward.octets == build(INDEX, 41, [bytes(700)] * 20)
    counted = bench.router.portals[0].counted, bench.router.portals[1].counted
    assert (counted[0].received, counted[1].sent) == (20, 20)


@pytest.mark.rows("R-160")
def test_pieces_pass_as_they_are() -> None:
    """R-160: nothing is put together and nothing is cut."""
    bench = Bench.begun().flowing()
    pieces = items_of(b"".join(encode_pieces(1, 41, b"x" * 5_000, 1_400, 0, None)))
    bench.feed(ev.ItemsArrived(ORIGIN, tuple(pieces)))
    assert b"".join(one.octets for one in bench.of(fx.Forward)) == b"".join(
        encode_pieces(INDEX, 41, b"x" * 5_000, 1_400, 0, None)
    )


@pytest.mark.rows("R-160", "R-163")
def test_a_message_that_fits_no_datagram_is_counted() -> None:
    """R-163."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ProxyOpened(1, ORIGIN, SESSION, INDEX, most_bytes=1_000))
    block = build(1, 10, [b"a" * 100, b"b" * 2_000, b"c" * 100])
    bench.feed(ev.ItemsArrived(ORIGIN, (Run(1, 10, 3, 2_200, block), run(13, 20, size=1_001))))
    assert numbers(bench.sent()) == [10, 12]
    assert bench.router.portals[1].counted.dropped[Drop.FRAGMENT_SIZE] == 21


@pytest.mark.rows("R-168")
def test_a_number_passes_once() -> None:
    bench = Bench.begun().flowing()
    bench.feed(ev.ItemsArrived(ORIGIN, (run(1, 5), run(3, 5), run(1, 7))))
    assert numbers(bench.sent()) == [1, 2, 3, 4, 5, 6, 7]
    assert bench.router.portals[1].counted.dropped[Drop.DUPLICATE] == 10


@pytest.mark.rows("R-229")
def test_announcements_go_on_and_greet_who_joins_later() -> None:
    bench = Bench.begun().flowing()
    bench.feed(ev.ItemsArrived(ORIGIN, (info(), info(codec.join(7, 2)))))
    (told,) = bench.sent()
    assert isinstance(told, Message)
    assert codec.decode(told).incarnation == codec.join(SESSION, INDEX)
    greeting = items_of(bench.router.streams.greeting(1, ORIGIN))
    assert [type(one) for one in greeting] == [Message, Message]
    assert codec.session_of(greeting[0]) == SESSION  # type: ignore[arg-type]  # it is a message
    assert codec.decode(greeting[1]).incarnation == codec.join(SESSION, INDEX)  # type: ignore[arg-type]
    assert bench.router.streams.greeting(0, ORIGIN) == b""


@pytest.mark.rows("R-187")
def test_the_newest_number_is_repeated() -> None:
    """D-19, R-187: by data, by a mark of the source, and by a loss at its end."""
    bench = Bench.begun().flowing()
    assert bench.router.streams.standing(1, ORIGIN) == b""
    bench.feed(ev.ItemsArrived(ORIGIN, (run(1, 5),)))
    for event, high in (
        (None, 5),
        (ev.ItemsArrived(ORIGIN, tuple(items_of(high_water_marks.message([(1, 8), (2, 70)])))), 8),
        (ev.NumbersLost(ORIGIN, 9, 2), 10),
    ):
        bench.effects.clear()
        if event is not None:
            bench.feed(event)
            assert bench.sent() == items_of(high_water_marks.message([(INDEX, high)]))
        assert bench.router.streams.standing(1, ORIGIN) == high_water_marks.message([(INDEX, high)])


@pytest.mark.rows("R-171")
def test_marks_and_announcements_stay_behind_the_data_of_their_topic() -> None:
    """R-171."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ProxyHeld(1, ORIGIN, held=True))
    bench.feed(ev.ItemsArrived(ORIGIN, (run(1), *items_of(high_water_marks.message([(1, 1)])), run(2), info(), run(3))))
    assert bench.sent() == []
    bench.feed(ev.ProxyHeld(1, ORIGIN, held=False))
    assert [type(one) for one in bench.sent()] == [Run, Message, Run, Message, Run]
    bench.feed(ev.ItemsArrived(ORIGIN, (run(4),)))
    assert numbers(bench.sent()) == [1, 2, 3, 4]


@pytest.mark.rows("R-164", "R-166")
def test_what_a_held_exit_cannot_keep_is_dropped_there_alone() -> None:
    """R-164, R-166: the source is not slowed, and another exit gets everything."""
    bench = Bench.begun(3, queue_bytes=1_000).flowing()
    bench.feed(ev.Overheard(2, packet(ORDERS)), ev.ProxyOpened(2, ORIGIN, 4, 4), ev.ProxyHeld(1, ORIGIN, held=True))
    bench.feed(*(ev.ItemsArrived(ORIGIN, (run(number, size=88),)) for number in range(1, 21)))
    bench.feed(ev.ProxyHeld(1, ORIGIN, held=False))
    assert numbers(bench.sent()) == list(range(1, 11))
    assert bench.router.portals[1].counted.dropped[Drop.BLOCKING] == 10
    assert list(bench.router.portals[1].queues.queues[ORIGIN].lost) == [(11, 21)]
    assert bench.router.portals[2].counted.sent == 20


@pytest.mark.rows("R-038", "R-063")
def test_the_last_receiver_leaves_and_the_proxy_ends() -> None:
    """R-038, R-063."""
    bench = Bench.begun().flowing()
    found = bench.feed(ev.Overheard(1, uses(ORDERS, lbmr_extended.LEAVE)))
    assert found == [fx.Want(0, ORDERS, False), fx.CloseProxy(1, ORIGIN), fx.LeaveSource(0, ORIGIN)]
    assert not bench.router.table.sources


@pytest.mark.rows("R-027")
def test_a_pattern_keeps_what_a_topic_leaves() -> None:
    """R-027: one proxy for a topic and three patterns."""
    bench = Bench.begun()
    others: list[lbmr.Query] = [lbmr.WildcardQuery(lbmr.PatternLanguage.PCRE, text) for text in ("^o", "ers$", "d")]
    bench.feed(*(ev.Overheard(1, packet(one)) for one in [ORDERS, *others]), ev.SourceFound(0, "orders", SOURCE))
    assert len(bench.of(fx.OpenProxy)) == 1
    bench.feed(*(ev.Overheard(1, uses(one, lbmr_extended.LEAVE)) for one in [ORDERS, *others[:2]]))
    assert not bench.of(fx.CloseProxy)
    bench.feed(ev.Overheard(1, uses(others[2], lbmr_extended.LEAVE)))
    assert len(bench.of(fx.CloseProxy)) == 1


@pytest.mark.rows("R-031")
def test_a_quiet_receiver_answers_and_keeps_its_proxy() -> None:
    """R-031."""
    bench = Bench.begun().flowing()
    assert fx.AskUse(1, (ORDERS,)) in bench.run(300 * SECOND)
    bench.feed(ev.Overheard(1, uses(ORDERS, lbmr_extended.USE, lbmr_extended.TopicRecord.ANSWER)))
    bench.run(100 * SECOND)
    assert not bench.of(fx.CloseProxy)
    bench.run(300 * SECOND)
    assert len(bench.of(fx.CloseProxy)) == 1


def test_a_question_is_no_interest() -> None:
    bench = Bench.begun()
    assert bench.feed(ev.Overheard(1, uses(ORDERS, lbmr_extended.USE))) == []


MANY = 3 * AT_ONCE + 1


def of_turns(bench: Bench, kind: type[fx.RouterEffect]) -> list[int]:
    """Let time pass, and return how many effects of a kind each turn has."""
    turns = list[int]()
    end = bench.now + 2 * SECOND
    while (due := bench.router.next_timeout()) is not None and due <= end:
        bench.now = max(bench.now, due)
        bench.router.handle_timeout(bench.now)
        turns.append(sum(isinstance(effect, kind) for effect in bench.router.take_effects()))
    return [count for count in turns if count]


def test_many_sources_are_repeated_a_few_in_each_turn() -> None:
    """Ten thousand proxies that opened in one turn stopped all streams for so long that their receivers gave up."""
    bench = Bench.begun()
    bench.feed(ev.Overheard(1, packet(PATTERN)))
    sources = [record(number) for number in range(1, MANY + 1)]
    bench.feed(*(ev.SourceFound(0, f"order {one.session_id}", one) for one in sources))
    assert len(bench.of(fx.OpenProxy)) == AT_ONCE
    assert of_turns(bench, fx.OpenProxy) == [AT_ONCE, AT_ONCE, 1]
    assert [source.joined for source in bench.router.table.sources.values()] == sources
    left = bench.feed(ev.Overheard(1, uses(PATTERN, lbmr_extended.LEAVE)))
    assert sum(isinstance(effect, fx.CloseProxy) for effect in left) == AT_ONCE
    assert of_turns(bench, fx.CloseProxy) == [AT_ONCE, AT_ONCE, 1]
    assert not bench.router.table.sources


def test_many_sources_that_are_lost_end_a_few_in_each_turn() -> None:
    bench = Bench.begun()
    bench.feed(ev.Overheard(1, packet(PATTERN)))
    for number in range(1, MANY + 1):
        bench.feed(ev.SourceFound(0, f"order {number}", record(number)))
    bench.run(0)
    bench.feed(*(ev.StreamEnded(origin) for origin in tuple(bench.router.table.sources)))
    assert of_turns(bench, fx.CloseProxy) == [AT_ONCE, AT_ONCE, AT_ONCE, 1]
    assert not bench.router.table.sources


def test_a_source_that_waits_for_its_turn_may_be_gone_by_then() -> None:
    bench = Bench.begun()
    bench.feed(ev.Overheard(1, packet(PATTERN)))
    sources = [record(number) for number in range(1, MANY + 1)]
    bench.feed(*(ev.SourceFound(0, f"order {one.session_id}", one) for one in sources))
    bench.feed(ev.SourceGone(0, f"order {MANY}", sources[-1]))
    bench.feed(ev.Overheard(1, uses(PATTERN, lbmr_extended.LEAVE)))
    bench.run(SECOND)
    assert len(bench.of(fx.OpenProxy)) == len(bench.of(fx.CloseProxy))
    assert not bench.router.table.sources
    assert not bench.router.sources.unsettled


@pytest.mark.rows("R-062")
@pytest.mark.parametrize("kind", ["stream", "record"])
def test_a_lost_source_keeps_its_proxies_for_a_while(kind: str) -> None:
    """R-062."""
    end: ev.RouterInput = ev.StreamEnded(ORIGIN) if kind == "stream" else ev.SourceGone(0, "orders", SOURCE)
    bench = Bench.begun().flowing()
    bench.feed(end)
    bench.run(900 * MILLISECOND)
    assert not bench.of(fx.CloseProxy)
    assert bench.feed(ev.SourceFound(0, "orders", SOURCE)) == [fx.JoinSource(0, ORIGIN, "orders", SOURCE)]
    bench.feed(end)
    assert fx.CloseProxy(1, ORIGIN) in bench.run(SECOND)
    assert not bench.router.table.sources


def test_a_source_is_joined_where_it_is_found_last() -> None:
    """D-5: numbers go on, because they are those of the source."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ItemsArrived(ORIGIN, (run(1, 3),)))
    other = attrs.evolve(SOURCE, address="10.0.1.2:14371", session_id=8, index=3)
    assert bench.feed(ev.SourceFound(0, "orders", other)) == [
        fx.LeaveSource(0, ORIGIN),
        fx.JoinSource(0, ORIGIN, "orders", other),
    ]
    assert bench.feed(ev.SourceGone(0, "orders", SOURCE)) == []
    bench.feed(ev.ItemsArrived(ORIGIN, (run(2, 3, index=3),)))
    assert numbers(bench.sent()) == [1, 2, 3, 4]


def test_what_is_left_of_a_dead_router_gives_way_to_the_source() -> None:
    """The first router was killed. Where it repeated the source, a service still knows its proxy."""
    bench = Bench.begun()
    bench.feed(ev.Overheard(0, packet(ORDERS)), ev.Overheard(1, packet(ORDERS)))
    left = attrs.evolve(SOURCE, address="10.0.2.9:14371", session_id=77, index=7, cost=1, hops=1)
    assert fx.JoinSource(1, ORIGIN, "orders", left) in bench.feed(ev.SourceFound(1, "orders", left))
    moved = bench.feed(ev.SourceFound(0, "orders", SOURCE))
    assert [fx.CloseProxy(0, ORIGIN), fx.LeaveSource(1, ORIGIN)] == moved[:2]
    assert fx.JoinSource(0, ORIGIN, "orders", SOURCE) in moved
    assert [one.portal for one in moved if isinstance(one, fx.OpenProxy)] == [1]
    bench.feed(ev.SourceGone(1, "orders", left))
    bench.feed(ev.StreamEnded(ORIGIN))
    assert fx.CloseProxy(1, ORIGIN) in bench.run(SECOND), "no place is left"
    assert not bench.router.table.sources


def test_a_source_that_is_lost_is_joined_where_another_router_repeats_it() -> None:
    bench = Bench.begun().flowing()
    bench.feed(ev.Overheard(0, packet(ORDERS)))
    around = attrs.evolve(SOURCE, address="10.0.2.9:14371", session_id=77, index=7, cost=5, hops=2)
    assert bench.feed(ev.SourceFound(1, "orders", around)) == [], "it is further away"
    assert fx.JoinSource(1, ORIGIN, "orders", around) in bench.feed(ev.StreamEnded(ORIGIN))


def test_a_place_that_gave_way_to_a_nearer_one_is_joined_again_when_that_goes() -> None:
    bench = Bench.begun()
    bench.feed(ev.Overheard(0, packet(ORDERS)), ev.Overheard(1, packet(ORDERS)))
    around = attrs.evolve(SOURCE, address="10.0.2.9:14371", session_id=77, index=7, cost=1, hops=1)
    bench.feed(ev.SourceFound(1, "orders", around), ev.SourceFound(0, "orders", SOURCE))
    assert fx.JoinSource(1, ORIGIN, "orders", around) in bench.feed(ev.StreamEnded(ORIGIN))


def test_the_late_end_of_a_place_is_not_that_of_the_next_one_there() -> None:
    """The other router has repeated the source anew, before its earlier proxy is known to have ended."""
    bench = Bench.begun().flowing()
    bench.feed(ev.Overheard(0, packet(ORDERS)))
    before = attrs.evolve(SOURCE, address="10.0.2.9:14371", session_id=77, index=7, cost=5, hops=2)
    around = attrs.evolve(before, session_id=78)
    bench.feed(*(ev.SourceFound(1, "orders", one) for one in (before, around)), ev.SourceGone(1, "orders", before))
    assert fx.JoinSource(1, ORIGIN, "orders", around) in bench.feed(ev.StreamEnded(ORIGIN))


@pytest.mark.rows("R-275", "R-042")
def test_access_lists_decide_on_proxies() -> None:
    """R-275."""
    only = (AccessEntry(True, (Condition(Subject.TOPIC, "orders"),)),)
    bench = Bench.begun(outbound=only)
    bench.feed(ev.Overheard(1, packet(PATTERN)), ev.SourceFound(0, "ordinary", record(8)))
    assert bench.of(fx.Want) == [fx.Want(0, PATTERN, True)]
    assert not bench.of(fx.OpenProxy)
    bench.feed(ev.SourceFound(0, "orders", SOURCE))
    assert [one.topic for one in bench.of(fx.OpenProxy)] == ["orders"]


def test_a_proxy_that_cannot_open_is_tried_again() -> None:
    bench = Bench.begun().flowing()
    found = bench.feed(ev.ProxyFailed(1, ORIGIN, "no port is free"))
    assert fx.LeaveSource(0, ORIGIN) in found
    assert [type(one) for one in bench.run(5 * SECOND) if not isinstance(one, fx.Announce)] == [
        fx.OpenProxy,
        fx.JoinSource,
    ]


def test_of_many_proxies_that_cannot_open_a_few_are_named() -> None:
    """Without descriptors thousands fail every five seconds."""
    bench = Bench.begun().flowing()
    for _ in range(9):
        bench.feed(ev.ProxyFailed(1, ORIGIN, "no descriptor is left"))
        bench.run(5 * SECOND)
    assert [one.text.rpartition(": ")[2] for one in bench.of(Remark)] == [
        f"no descriptor is left ({count} so far)" for count in (1, 2, 4, 8)
    ]


def test_a_proxy_that_is_opened_anew_is_no_error() -> None:
    bench = Bench.begun().flowing()
    assert not [one for one in bench.feed(ev.ProxyFailed(1, ORIGIN, "")) if isinstance(one, Remark)]
    assert not bench.router.portals[1].counted.dropped
    bench.run(5 * SECOND)
    assert len(bench.of(fx.OpenProxy)) == 2


@pytest.mark.rows("R-040")
def test_interest_that_a_service_tells() -> None:
    """R-040."""
    bench = Bench.begun(leased=False)
    assert not bench.of(fx.Wake)
    bench.feed(ev.InterestTold(1, ORDERS, on=True), ev.SourceFound(0, "orders", SOURCE))
    assert len(bench.of(fx.OpenProxy)) == 1
    bench.run(1_000 * SECOND)
    assert not bench.of(fx.CloseProxy)
    bench.feed(ev.InterestTold(1, ORDERS, on=False))
    assert len(bench.of(fx.CloseProxy)) == 1


def rival(portal: int = 1, instance: bytes = b"a-router") -> ev.Overheard:
    route = lbmr_extended.DomainRoute(count=1, address="10.0.2.8", port=1, length=20, domains=(1,))
    options = lbmr.standard_options(instance, lbmr.SourceType.GATEWAY, domain=2)
    return ev.Overheard(portal, lbmr_extended.Packet(route, options))


@pytest.mark.rows("R-024")
def test_what_another_router_asks_for_is_no_interest() -> None:
    """R-024."""
    bench = Bench.begun()
    assert bench.feed(ev.Overheard(1, packet(ORDERS, instance=b"z-router", kind=lbmr.SourceType.GATEWAY))) == []


def test_the_later_of_two_routers_stands_aside() -> None:
    portals = [PortalSettings(f"p{n}", n + 1, (NAMES[n],)) for n in range(3)]
    bench = Bench(Router.create(portals, 0))
    bench.feed(rival())
    bench.run(3 * SECOND)
    assert [portal.standing for portal in bench.router.portals] == [
        Standing.FORWARDS,
        Standing.STANDS_ASIDE,
        Standing.FORWARDS,
    ]
    assert [remark.warning for remark in bench.of(Remark)] == [True]
    assert {one.domains for one in bench.of(fx.Announce) if one.portal == 0} == {(3,)}
    assert not [one for one in bench.of(fx.Announce) if one.portal == 1]
    bench.feed(ev.Overheard(1, packet(ORDERS)))
    assert not bench.of(fx.Want)
    # The other one falls silent.
    bench.run(2 * SECOND)
    assert bench.router.portals[1].forwards
    assert fx.Want(0, ORDERS, True) in bench.effects


def test_of_two_that_forward_one_stands_aside() -> None:
    bench = Bench.begun().flowing()
    assert bench.feed(rival(instance=b"z-router")) == []
    bench.feed(rival(instance=b"a-router"))
    assert bench.router.portals[1].standing is Standing.STANDS_ASIDE
    assert bench.of(fx.CloseProxy)
    assert not bench.router.table.sources or not bench.router.table.sources[ORIGIN].proxies
    assert fx.Want(0, ORDERS, False) in bench.effects


@pytest.mark.rows("R-099")
def test_two_portals_in_one_domain_are_told() -> None:
    bench = Bench.begun(3)
    route = rival(portal=2, instance=NAMES[1])
    bench.feed(route, rival(portal=1, instance=NAMES[2]))
    assert [portal.forwards for portal in bench.router.portals] == [True, True, False]


def test_unicast_leaves_in_the_domain_of_its_destination() -> None:
    bench = Bench.begun()
    arrived = ev.UnicastArrived(0, sent(), way_of(sent()))
    (onward,) = bench.feed(arrived)
    assert isinstance(onward, fx.SendUnicast)
    assert (onward.portal, onward.address) == (1, "10.0.2.1:14392")
    assert bench.feed(arrived, ev.UnicastArrived(0, sent(), UnicastDrop.FOREIGN)) == []
    dropped = bench.router.portals[0].counted.unicast_dropped
    assert dropped == {UnicastDrop.DUPLICATE: 1, UnicastDrop.FOREIGN: 1}
    full, ended = UnicastDrop.BLOCKING, UnicastDrop.LINK_DOWN
    bench.feed(ev.UnicastFailed(1, onward.address, full), ev.UnicastFailed(1, onward.address))
    assert bench.router.portals[1].counted.unicast_dropped == {full: 1, ended: 1}


STEPS = st.lists(
    st.sampled_from(["wanted", "left", "found", "gone", "ended", "opened", "failed", "held", "free", "items", "time"])
    | st.tuples(st.just("data"), st.integers(1, 60), st.integers(1, 9)),
    max_size=60,
)


@given(STEPS)
def test_joined_and_repeated_exactly_while_there_is_a_source_and_interest(steps: list[object]) -> None:
    """Whatever happens in whatever order: effects pair, each number leaves at most once, and nothing is left over."""
    bench = Bench.begun(queue_bytes=200)
    joined, opened, left = 0, 0, set[int]()
    events: dict[object, ev.RouterInput] = {
        "wanted": ev.Overheard(1, packet(ORDERS)),
        "left": ev.Overheard(1, uses(ORDERS, lbmr_extended.LEAVE)),
        "found": ev.SourceFound(0, "orders", SOURCE),
        "gone": ev.SourceGone(0, "orders", SOURCE),
        "ended": ev.StreamEnded(ORIGIN),
        "opened": ev.ProxyOpened(1, ORIGIN, SESSION, INDEX),
        "failed": ev.ProxyFailed(1, ORIGIN, "test"),
        "held": ev.ProxyHeld(1, ORIGIN, held=True),
        "free": ev.ProxyHeld(1, ORIGIN, held=False),
        "items": ev.ItemsArrived(ORIGIN, (info(),)),
    }
    for step in [*steps, "left", "time"]:
        if step == "time":
            found = bench.run(2 * SECOND)
        elif isinstance(step, tuple):
            found = bench.feed(ev.ItemsArrived(ORIGIN, (run(step[1], step[2]),)))
        else:
            found = bench.feed(events[step])
        if step == "ended" and joined:
            joined -= 1
        if step == "failed" and opened:
            opened -= 1
        for effect in found:
            match effect:
                case fx.JoinSource():
                    joined += 1
                case fx.LeaveSource():
                    joined -= 1
                case fx.OpenProxy():
                    opened, left = opened + 1, set()
                case fx.CloseProxy():
                    opened -= 1
                case fx.Forward(octets=octets):
                    assert opened
                    for number in numbers(items_of(octets)):
                        assert number not in left
                        left.add(number)
                case _:
                    pass
            assert 0 <= opened <= 1
            assert 0 <= joined <= 1
    assert (joined, opened) == (0, 0)
    assert bench.router.portals[1].queues.size == 0
    assert not bench.router.table.sources


@pytest.mark.rows("R-187")
def test_a_quiet_source_is_known_by_its_announcement() -> None:
    """R-187: no data came since the proxy began."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ItemsArrived(ORIGIN, (info(),)))
    told = items_of(bench.router.streams.standing(1, ORIGIN))
    assert [type(one) for one in told] == [Message, Message]
    assert list(high_water_marks.marks(told[0])) == [(INDEX, 0)]  # type: ignore[arg-type]  # it is a message


@pytest.mark.rows("R-171", "R-187")
@pytest.mark.parametrize(("held", "high"), [(False, 25), (True, 20)])
def test_who_joins_later_is_told_the_newest_number_that_has_left(held: bool, high: int) -> None:
    """What left before would look like a loss, and what waits is still to come."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ItemsArrived(ORIGIN, (info(), run(11, 10))))
    bench.feed(ev.ProxyHeld(1, ORIGIN, held=held), ev.ItemsArrived(ORIGIN, (run(21, 5),)))
    _, greeting = items_of(bench.router.streams.greeting(1, ORIGIN))
    told = codec.decode(greeting)  # type: ignore[arg-type]  # it is a message
    assert isinstance(told, SourceInfo)
    assert told.high == high


@pytest.mark.rows("R-171")
def test_a_number_does_not_overtake_the_data_that_waits() -> None:
    """R-171."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ProxyHeld(1, ORIGIN, held=True), ev.ItemsArrived(ORIGIN, (run(1, 5),)))
    assert bench.router.streams.standing(1, ORIGIN) == b""


def test_an_announcement_names_the_domain_of_its_source() -> None:
    bench = Bench.begun().flowing()
    bench.feed(ev.ItemsArrived(ORIGIN, (info(),)))
    (told,) = bench.sent()
    assert isinstance(told, Message)
    found = codec.decode(told)
    assert isinstance(found, SourceInfo)
    assert found.request == "1:10.0.1.1:14391"


def test_what_waits_goes_with_its_proxy() -> None:
    """R-169: the queue stayed full for ever."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ProxyHeld(1, ORIGIN, held=True), ev.ItemsArrived(ORIGIN, (run(1, 5),)))
    assert bench.router.portals[1].queues.size
    bench.feed(ev.Overheard(1, uses(ORDERS, lbmr_extended.LEAVE)))
    assert bench.router.portals[1].queues.size == 0
    # The next proxy begins with an empty queue that nothing holds.
    bench.feed(ev.Overheard(1, packet(ORDERS)), ev.SourceFound(0, "orders", SOURCE))
    bench.feed(ev.ProxyOpened(1, ORIGIN, SESSION, INDEX), ev.ItemsArrived(ORIGIN, (run(6),)))
    assert numbers(bench.sent()) == [6]


@pytest.mark.rows("R-178", "R-181")
def test_a_gap_of_any_size_stays_one_behind_the_router() -> None:
    """R-178, R-181: what was lost before the portal is named by the next mark, and the rest goes on."""
    bench = Bench.begun().flowing()
    bench.feed(ev.ItemsArrived(ORIGIN, (run(1, 2),)), ev.NumbersLost(ORIGIN, 3, 5_000))
    (told, *_) = items_of(bench.router.streams.standing(1, ORIGIN))
    assert list(high_water_marks.marks(told)) == [(INDEX, 5_002)]  # type: ignore[arg-type]  # it is a message
    bench.feed(ev.ItemsArrived(ORIGIN, (run(5_003, 2),)))
    assert numbers(bench.sent()) == [1, 2, 5_003, 5_004]


@pytest.mark.rows("R-183")
def test_messages_leave_in_the_order_in_which_they_came() -> None:
    """R-183: a hop that repairs late has another order, and the next one keeps it."""
    bench = Bench.begun().flowing()
    bench.feed(*(ev.ItemsArrived(ORIGIN, (run(number),)) for number in (1, 4, 2, 3, 5)))
    assert numbers(bench.sent()) == [1, 4, 2, 3, 5]


@pytest.mark.rows("R-258")
def test_all_is_quiet_when_topics_and_patterns_have_come_and_gone() -> None:
    """R-258."""
    bench = Bench.begun()
    for turn in range(50):
        topic = lbmr.TopicQuery(f"orders {turn}")
        bench.feed(*(ev.Overheard(1, packet(one)) for one in (PATTERN, topic)))
        bench.feed(ev.SourceFound(0, topic.name, record(7, turn + 1)))
        bench.feed(*(ev.Overheard(1, uses(one, lbmr_extended.LEAVE)) for one in (topic, PATTERN)))
    bench.effects.clear()
    assert {type(one) for one in bench.run(1_000 * SECOND)} == {fx.Announce}
    assert not bench.router.table.sources
