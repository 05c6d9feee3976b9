"""Who hears that messages to single contexts may have been lost on their way through routers."""

from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.forwarding import UnicastDrop
from stablecast.transports.routing.losses import PAUSE_NS
from stablecast.transports.routing.network_map import NodeRecord
from stablecast.transports.wire import lbmc
from tests.transports.routing.fabric import Fabric

PLACE = "10.0.3.1:14391"


def chain() -> Fabric:
    """Three routers in a row, of whose beginning nobody hears any more."""
    fabric = Fabric.of(3, (0, 1), (1, 2))
    fabric.hung_up.clear()
    return fabric


def told(fabric: Fabric) -> dict[int, set[tuple[int, str]]]:
    return {domain: set(found) for domain, found in fabric.hung_up.items()}


def test_a_broken_link_is_told_to_all_who_sent_over_it() -> None:
    fabric = chain()
    fabric.cut(1, 2)
    fabric.run(PAUSE_NS)
    assert told(fabric) == {1: {(3, "")}, 2: {(3, "")}, 3: {(1, ""), (2, "")}}
    counted = [one.portals[0].counted.disconnects for one in fabric.routers]
    assert counted == [2 + 1, 2 + 1, 2 + 2]  # The first two are the beginning of each router's network.


def test_a_link_that_is_back_before_anybody_looked_was_broken() -> None:
    """Both records of a router come in one segment, so the way is the same before and after."""
    fabric = chain()
    known = fabric.routers[0].network.map.records[fabric.routers[1].node]
    records = [
        NodeRecord(known.node, known.name, known.generation + 1, known.neighbours[:-1]),
        NodeRecord(known.node, known.name, known.generation + 2, known.neighbours),
    ]
    lost = known.neighbours[-1].node
    assert lost == fabric.routers[2].node
    fabric.feed(0, ev.LinkArrived(1, tuple(lbmc.decode(lm.encode(one))[0] for one in records)))
    assert told(fabric) == {1: {(3, "")}}


def test_a_broken_destination_is_told_to_the_whole_network_once() -> None:
    fabric = chain()
    fabric.feed(2, ev.UnicastFailed(0, PLACE), ev.UnicastFailed(0, PLACE, UnicastDrop.BLOCKING))
    fabric.run(2 * PAUSE_NS)
    assert fabric.hung_up == {1: [(3, PLACE)], 2: [(3, PLACE)]}
    fabric.feed(2, ev.UnicastFailed(0, PLACE))
    fabric.run(3 * PAUSE_NS)
    assert fabric.hung_up == {1: [(3, PLACE)] * 2, 2: [(3, PLACE)] * 2}


def test_a_host_that_breaks_its_connections_disturbs_others_less_and_less() -> None:
    fabric = chain()
    waits = []
    fabric.feed(2, *(ev.UnicastFailed(0, f"10.0.3.8:{port}") for port in range(1, 9)))
    fabric.run(2 * PAUSE_NS)
    assert fabric.routers[2].losses.told[0, "10.0.3.8"][1] == 2 * PAUSE_NS
    fabric.hung_up.clear()
    for port in range(1, 9):
        began = fabric.now
        fabric.feed(2, ev.UnicastFailed(0, f"10.0.3.9:{port}"))
        while len(fabric.hung_up.get(2, ())) < port:
            fabric.run(PAUSE_NS)
        waits.append((fabric.now - began) // PAUSE_NS)
    assert waits == [2, 3, 5, 9, 17, 33, 51, 51]  # and the time that the link takes
    fabric.feed(2, ev.UnicastFailed(0, PLACE))
    fabric.run(2 * PAUSE_NS)
    assert fabric.hung_up[2][-1] == (3, PLACE)


def test_of_a_process_that_has_ended_nobody_hears() -> None:
    """Its connection ended first, and then nobody listened."""
    fabric = chain()
    fabric.feed(2, ev.UnicastFailed(0, PLACE), ev.UnicastFailed(0, PLACE, UnicastDrop.REFUSED))
    fabric.run(2 * PAUSE_NS)
    assert not fabric.hung_up


def test_a_full_link_is_told_to_those_behind_whom_it_lies() -> None:
    fabric = chain()
    fabric.feed(1, ev.UnicastFailed(2, "", UnicastDrop.BLOCKING))
    fabric.run(2 * PAUSE_NS)
    assert told(fabric) == {1: {(3, "")}, 2: {(3, "")}}


def test_what_comes_by_another_way_is_not_believed() -> None:
    fabric = chain()
    fabric.feed(1, ev.LinkArrived(2, (lbmc.decode(lm.encode(lm.MessageLost(1, PLACE)))[0],)))
    assert not fabric.hung_up
