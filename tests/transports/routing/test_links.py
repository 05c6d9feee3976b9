"""Routers that are linked: pairs, chains and rings, on the virtual clock."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports import codec
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.access import AccessEntry, Condition, Subject
from stablecast.transports.routing.network import MAX_MADE_UP
from stablecast.transports.routing.network_map import Neighbour, NodeRecord
from stablecast.transports.routing.portals import Drop
from stablecast.transports.routing.sources import RETRY_NS
from tests.transports.routing.bench import ORDERS, ORIGIN, PATTERN, SOURCE, info, items_of, packet, record, uses
from tests.transports.routing.fabric import DELAY, Fabric

CHAIN = ((0, 1), (1, 2))
RING = ((0, 1), (1, 2), (0, 2))


@pytest.mark.rows("R-025")
def test_a_pair_repeats_what_the_other_domain_wants() -> None:
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.publish(0, 1)
    fabric.want(1)
    fabric.run(SECOND)
    fabric.publish(0, 2, 5)
    fabric.run(SECOND)
    assert fabric.left == {2: [2, 3, 4, 5, 6]}


def test_without_interest_no_data_pass_a_link() -> None:
    fabric = Fabric.of(3, *CHAIN)
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    fabric.publish(0, 1, 5)
    fabric.run(SECOND)
    assert fabric.left == {2: [1, 2, 3, 4, 5]}
    assert {router for router, _ in fabric.entered} == {1}


@pytest.mark.rows("R-080", "R-085")
@pytest.mark.parametrize("shape", [CHAIN, RING])
def test_every_domain_gets_every_number_once(shape: tuple[tuple[int, int], ...]) -> None:
    fabric = Fabric.of(3, *shape)
    fabric.source(0)
    fabric.want(0, 1, 2)
    fabric.run(SECOND)
    fabric.publish(0, 1, 100)
    fabric.run(SECOND)
    assert fabric.left == {2: list(range(1, 101)), 3: list(range(1, 101))}
    assert set(fabric.entered.values()) == {1}
    assert len(fabric.signatures()) == 1
    told = [domains for one in fabric.routers for _, link in one.network.links() for domains in link.told.values()]
    assert sum(map(len, told)) == 6, "the interest of each domain goes to each router once"


@pytest.mark.rows("R-039")
def test_the_last_receiver_ends_everything_on_the_way() -> None:
    fabric = Fabric.of(3, *CHAIN)
    fabric.source(0)
    fabric.want(2)
    fabric.run(SECOND)
    assert fabric.joined[0]
    fabric.leave(2)
    fabric.run(SECOND)
    assert not fabric.joined[0]
    assert not any(one.table.sources for one in fabric.routers)
    assert not any(portal.wants for one in fabric.routers for portal in one.portals)
    assert not any(link.told for one in fabric.routers for _, link in one.network.links())


@pytest.mark.rows("R-082")
def test_only_the_cheapest_path_carries_data() -> None:
    """R-082: round the dear link of a ring."""
    fabric = Fabric.of(3, *RING, dear=((0, 1),))
    fabric.source(0)
    fabric.want(1, 2)
    fabric.run(SECOND)
    fabric.publish(0, 1, 100)
    fabric.run(SECOND)
    assert fabric.left == {2: list(range(1, 101)), 3: list(range(1, 101))}
    sent = [portal.counted.sent for portal in fabric.routers[0].portals]
    assert sent[1:] == [0, 100], "the first link is the dear one"


@pytest.mark.rows("R-100")
def test_a_network_that_breaks_apart_goes_on_in_parts() -> None:
    """R-100: what the other part had ends in time, and all of it is back when the parts are joined."""
    fabric = Fabric.of(4, (0, 1), (1, 2), (2, 3))
    fabric.source(0)
    fabric.source(3, record(session=8))
    fabric.want(1, 2)
    fabric.run(SECOND)
    fabric.cut(1, 2)
    fabric.run(10 * SECOND)
    assert [len(one.table.sources) for one in fabric.routers] == [1, 1, 1, 1]
    fabric.publish(0, 1, 5)
    fabric.publish(3, 11, 5)
    fabric.run(SECOND)
    assert fabric.left == {2: [1, 2, 3, 4, 5], 3: [11, 12, 13, 14, 15]}
    fabric.join(1, 2)
    fabric.run(SECOND)
    assert [len(one.table.sources) for one in fabric.routers] == [1, 2, 2, 1]


@pytest.mark.rows("R-086", "R-087", "R-092")
@pytest.mark.parametrize("silent", [False, True])
def test_a_ring_heals_round_the_other_way(silent: bool) -> None:
    """Under a second after a closed connection, under five after silence; nothing twice, and nothing in a circle."""
    fabric = Fabric.of(3, *RING)
    fabric.source(0)
    fabric.want(1, 2)
    fabric.run(SECOND)
    fabric.cut(0, 1, silent)
    began, number = fabric.now, 0
    while not fabric.left.get(2):
        number += 1
        fabric.publish(0, number)
        fabric.run(10 * MILLISECOND)
        assert fabric.now - began < (5 * SECOND if silent else SECOND)
    fabric.publish(0, number + 1, 100)
    fabric.run(SECOND)
    assert fabric.left[2][-100:] == list(range(number + 1, number + 101))
    assert max(fabric.entered.values()) == 1
    assert fabric.left[3] == sorted(set(fabric.left[3]))
    fabric.join(0, 1)
    fabric.run(10 * SECOND)
    fabric.publish(0, number + 101, 100)
    fabric.run(SECOND)
    for domain in (2, 3):
        assert fabric.left[domain] == sorted(set(fabric.left[domain]))
        assert fabric.left[domain][-100:] == list(range(number + 101, number + 201))
    assert len(fabric.signatures()) == 1


@pytest.mark.rows("R-035")
@pytest.mark.parametrize("killed", [0, 1, 2])
def test_a_router_of_a_chain_begins_again(killed: int) -> None:
    fabric = Fabric.of(3, *CHAIN)
    fabric.source(0)
    fabric.want(2)
    fabric.run(SECOND)
    fabric.publish(0, 1, 10)
    fabric.run(SECOND)
    fabric.kill(killed)
    fabric.run(4 * SECOND)
    for link in CHAIN:
        if killed in link:
            fabric.join(*link)
    if killed == 2:
        fabric.want(2)
    fabric.run(10 * SECOND)
    fabric.publish(0, 11, 10)
    fabric.run(SECOND)
    assert fabric.left[3] == list(range(1, 21))
    assert len(fabric.signatures()) == 1


@pytest.mark.rows("R-036")
def test_a_link_that_breaks_keeps_the_stream_of_the_source_for_a_while() -> None:
    """The interest behind it is held, so the next link finds everything as it was."""
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    fabric.cut(0, 1)
    fabric.run(4 * SECOND)
    assert ORDERS in fabric.routers[0].portals[0].wants
    fabric.run(2 * SECOND)
    assert ORDERS not in fabric.routers[0].portals[0].wants


def test_what_comes_by_a_path_that_only_one_side_knows_is_not_taken() -> None:
    """Maps differ for a while: the other side sends by a tree of its own."""
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    right = fabric.routers[0].network.ways[1].name
    for name, taken in ((right ^ 1, []), (right, [2])):
        fabric.feed(1, ev.LinkArrived(1, tuple(items_of(lm.encode(lm.PathsTold(((1, name),)))))))
        fabric.publish(0, 1 + len(taken))
        fabric.run(10 * MILLISECOND)
        assert fabric.left.get(2, []) == taken
    assert fabric.routers[1].portals[1].counted.stray == 1


@pytest.mark.parametrize("what", ["interest", "source"])
def test_a_link_on_which_something_was_missed_begins_anew(what: str) -> None:
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    assert not fabric.ended
    link = fabric.routers[0].portals[1].link if what == "interest" else fabric.routers[1].portals[1].link
    assert link is not None
    if what == "interest":
        link.heard_interest ^= 1
    else:
        link.heard_sources ^= 1
    fabric.run(2 * SECOND)
    assert [router for router, _ in fabric.ended] == [0 if what == "interest" else 1]


@pytest.mark.parametrize("octets", [lm.encode(lm.InterestTold(ORDERS, 0, True)), lm.encode(NodeRecord(7))])
def test_what_cannot_be_understood_ends_the_link(octets: bytes) -> None:
    fabric = Fabric.of(2, (0, 1))
    fabric.feed(1, ev.LinkArrived(1, tuple(items_of(octets))))
    assert [router for router, _ in fabric.ended] == [1]


def test_routers_that_know_too_little_of_each_other_tell_everything_again() -> None:
    """A record was lost by a fault; five seconds of different signatures bring it back."""
    fabric = Fabric.of(3, *CHAIN)
    lost = fabric.routers[2].node
    network = fabric.routers[0].network
    del network.map.records[lost]
    fabric.run(10 * SECOND)
    assert lost in network.map.records


def test_what_others_make_up_about_a_router_is_outbid() -> None:
    fabric = Fabric.of(2, (0, 1))
    node = fabric.routers[0].node
    made_up = NodeRecord(node, "r0", 70, (Neighbour(9),))
    fabric.feed(1, ev.LinkArrived(1, tuple(items_of(lm.encode(made_up)))))
    fabric.feed(0, ev.LinkArrived(1, tuple(items_of(lm.encode(made_up)))))
    fabric.run(SECOND)
    assert fabric.routers[1].network.map.records[node].generation == 71
    assert len(fabric.signatures()) == 1
    fabric.feed(0, ev.LinkArrived(1, tuple(items_of(lm.encode(attrs.evolve(made_up, generation=MAX_MADE_UP))))))
    assert [router for router, _ in fabric.ended] == [0]


@pytest.mark.rows("R-087")
def test_a_link_that_breaks_again_and_again_is_left_out_for_longer() -> None:
    fabric = Fabric.of(2, (0, 1))
    waits = []
    for _ in range(8):
        fabric.cut(0, 1)
        fabric.run(SECOND)
        fabric.join(0, 1)
        began = fabric.now
        while not fabric.routers[0].portals[1].forwards:
            fabric.run(10 * MILLISECOND)
        waits.append((fabric.now - began) // (100 * MILLISECOND))
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (2, 50)
    fabric.run(11 * SECOND)
    fabric.cut(0, 1)
    fabric.join(0, 1)
    fabric.run(10 * MILLISECOND)
    assert fabric.routers[0].portals[1].forwards


def test_data_waits_behind_what_a_link_takes_and_the_newest_is_dropped() -> None:
    """Control goes on meanwhile, and the newest number is told at the end, so that the gap is known."""
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    fabric.feed(0, ev.LinkHeld(1, True))
    queues = fabric.routers[0].portals[1].queues
    queues.most_bytes = 2_000
    for number in range(1, 201):
        fabric.publish(0, number)
        fabric.run(50 * MILLISECOND)
    assert not fabric.left
    assert not fabric.ended
    assert 0 < queues.size <= 2_000
    dropped = fabric.routers[0].portals[1].counted.dropped[Drop.BLOCKING]
    fabric.feed(0, ev.LinkHeld(1, False))
    fabric.run(SECOND)
    assert fabric.left[2] == list(range(1, 201 - dropped))
    assert fabric.routers[1].table.sources[SOURCE.origin].high == 200
    assert [(low, high) for low, high in queues.queues[SOURCE.origin].lost] == [(201 - dropped, 201)]
    assert queues.size == 0


def test_what_waits_for_a_link_that_ends_is_counted() -> None:
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    fabric.feed(0, ev.LinkHeld(1, True))
    fabric.publish(0, 1, 7)
    fabric.cut(0, 1)
    portal = fabric.routers[0].portals[1]
    assert portal.counted.dropped[Drop.LINK_DOWN] == 7
    assert portal.queues.size == 0


@pytest.mark.rows("R-134")
def test_round_trips_are_measured() -> None:
    fabric = Fabric.of(2, (0, 1))
    fabric.run(10 * SECOND)
    trips = fabric.routers[0].portals[1].trips
    assert trips.count >= 10
    assert trips.shortest == trips.longest == trips.last == 2 * DELAY


def test_patterns_and_access_lists_hold_on_links() -> None:
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.sources[0].append(record(session=8, index=2))
    portal = fabric.routers[0].portals[1]
    rejecting = (AccessEntry(False, (Condition(Subject.TOPIC, "orders"),)), AccessEntry(True))
    for outbound, told in ((None, 1), (rejecting, 0)):
        portal.settings = attrs.evolve(portal.settings, outbound=outbound)
        fabric.feed(1, ev.Overheard(0, packet(PATTERN)))
        fabric.run(SECOND)
        fabric.feed(0, ev.SourceFound(0, "orders", SOURCE))
        fabric.run(SECOND)
        link = fabric.routers[1].portals[1].link
        assert link is not None
        assert len(link.sources) == told
        fabric.feed(1, ev.Overheard(0, uses(PATTERN, 0)))
        fabric.run(SECOND)


def test_interest_counts_only_from_the_way_of_its_domain() -> None:
    """In a ring the neighbour on the other side may tell of it while maps differ."""
    fabric = Fabric.of(3, *RING)
    fabric.source(0)
    fabric.run(100 * MILLISECOND)  # The digests of this second are told.
    told = lm.InterestTold(ORDERS, 2, True)
    link = next(number for number, one in fabric.routers[0].network.links() if one.name == "r2")
    fabric.feed(0, ev.LinkArrived(link, tuple(items_of(lm.encode(told)))))
    fabric.run(10 * MILLISECOND)
    assert not fabric.joined.get(0)
    fabric.cut(0, 1)
    fabric.run(100 * MILLISECOND)
    assert fabric.joined[0], "the way leads there now"


def test_proxies_stay_when_their_source_comes_by_another_link() -> None:
    """Receivers notice nothing, and the window of numbers goes on."""
    fabric = Fabric.of(3, *RING)
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    fabric.publish(0, 1, 5)
    fabric.run(SECOND)
    proxy = fabric.routers[1].table.sources[SOURCE.origin].proxies[0]
    fabric.cut(0, 1)
    fabric.run(SECOND)
    source = fabric.routers[1].table.sources[SOURCE.origin]
    assert source.proxies == {0: proxy}
    assert source.proxies[0] is proxy
    fabric.publish(0, 4, 5)
    fabric.run(SECOND)
    assert fabric.left[2] == list(range(1, 9))


def test_a_source_that_was_told_before_it_is_wanted_is_taken_up_when_it_is() -> None:
    """The interest of the router's earlier life is held, so the source is told before the domain asks again."""
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    fabric.feed(0, ev.ItemsArrived(SOURCE.origin, (info(),)))
    for wanted in (ORDERS, PATTERN):
        fabric.kill(1)
        fabric.join(0, 1)
        fabric.run(3 * SECOND)
        assert [*fabric.routers[1].network.links()]
        assert not fabric.routers[1].table.sources
        fabric.feed(1, ev.Overheard(0, packet(wanted)))
        fabric.run(SECOND)
        fabric.left.clear()
        fabric.publish(0, 1, 5)
        fabric.run(SECOND)
        assert fabric.left == {2: [1, 2, 3, 4, 5]}
        assert fabric.routers[1].table.sources[SOURCE.origin].info is not None, "it is told once, too"


def test_a_second_link_to_the_same_router_is_refused() -> None:
    fabric = Fabric.of(2, (0, 1))
    other = fabric.routers[1]
    router = fabric.fresh(0, 3)
    for portal in (1, 2):
        router.receive(ev.LinkBegun(portal, other.node, other.name), 0)
    assert [one.portal for one in router.take_effects() if isinstance(one, fx.LinkDrop)] == [2]
    router.receive(ev.LinkBegun(2, router.node, router.name), 0)
    assert [one.portal for one in router.take_effects() if isinstance(one, fx.LinkDrop)] == [2]


def test_a_source_that_fell_silent_is_announced_by_a_proxy_that_opens_late() -> None:
    """Its last announcement came while the router had no descriptor for a proxy, and is told on a link once."""
    fabric = Fabric.of(2, (0, 1))
    fabric.source(0)
    fabric.want(1)
    fabric.run(SECOND)
    far = fabric.routers[1]
    fabric.feed(1, ev.ProxyFailed(0, ORIGIN, "no descriptors"))
    assert far.streams.greeting(0, ORIGIN) == b""
    fabric.feed(0, ev.ItemsArrived(ORIGIN, (info(late_join=True),)))
    fabric.run(RETRY_NS + SECOND)
    _, told = items_of(far.streams.greeting(0, ORIGIN))
    announced: Any = codec.decode(told)  # type: ignore[arg-type]  # it is a message
    assert announced.late_join
