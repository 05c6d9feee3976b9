"""The map of a network of routers: costs, trees, agreement, leases."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import SECOND
from stablecast.transports.routing.network_map import (
    LEASE_NS,
    MAX_DOMAIN,
    MAX_NEIGHBOURS,
    Neighbour,
    NetworkMap,
    NodeRecord,
    Way,
    path_name,
)

BASE = MAX_DOMAIN + 1
"""The node of router 0; the others follow it."""

Links = dict[tuple[int, int], tuple[int, int]]
"""The links of a network: two routers, and the costs of the portal of either."""


def records(routers: int, links: Links, domain_cost: int = 1, generation: int = 1) -> list[NodeRecord]:
    """The records of routers 0, 1, ... with the domains 1, 2, ... beside each of them."""
    beside: list[list[Neighbour]] = [[Neighbour(n + 1, domain_cost, domain_cost)] for n in range(routers)]
    for (one, other), (cost, cost_there) in links.items():
        beside[one].append(Neighbour(BASE + other, cost, cost))
        beside[other].append(Neighbour(BASE + one, cost_there, cost_there))
    return [NodeRecord(BASE + n, f"r{n}", generation, tuple(sorted(beside[n]))) for n in range(routers)]


def seen_by(router: int, found: list[NodeRecord]) -> NetworkMap:
    made = NetworkMap(BASE + router)
    for record in found:
        assert made.learn(record)
    return made


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, Links]:
    """A connected network of up to 12 routers."""
    count = draw(st.integers(1, 12))
    costs = st.tuples(st.integers(1, 3), st.integers(1, 3))
    links = {(draw(st.integers(0, n - 1)), n): draw(costs) for n in range(1, count)}
    for _ in range(draw(st.integers(0, count))):
        one, other = sorted((draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))))
        if one != other:
            links[one, other] = draw(costs)
    return count, links


@pytest.mark.rows("R-081")
def test_the_cost_of_a_path_is_that_of_all_portals() -> None:
    """R-081: both ends of each link, and the endpoints."""
    made = seen_by(2, records(3, {(0, 1): (5, 3), (1, 2): (2, 4)}))
    assert made.ways()[1].cost == 1 + 5 + 3 + 2 + 4
    assert made.ways()[1].entry == BASE + 1
    assert made.ways()[1].onward == {3: (3,)}


@pytest.mark.rows("R-083")
def test_of_equal_paths_that_with_the_lowest_nodes_counts() -> None:
    """R-083: a ring of four; the way from domain 1 to router 2 is the same for both that could be on it."""
    found = records(4, {(0, 1): (1, 1), (1, 2): (1, 1), (2, 3): (1, 1), (0, 3): (1, 1)})
    assert seen_by(2, found).ways()[1].entry == BASE + 1
    assert seen_by(1, found).ways()[1].onward == {2: (2,), BASE + 2: (3,)}
    assert BASE + 2 not in seen_by(3, found).ways()[1].onward


def test_routers_are_joined_only_if_both_say_so() -> None:
    found = records(2, {(0, 1): (1, 1)})
    alone = NodeRecord(found[1].node, "r1", 2, (Neighbour(2),))
    made = seen_by(0, found)
    assert set(made.ways()) == {1, 2}
    assert made.learn(alone)
    assert set(made.ways()) == {1}
    assert made.reached() == {BASE}


def test_no_path_leads_through_a_domain() -> None:
    """Routers 0 and 1 are both in domain 9, and not joined otherwise."""
    shared = [NodeRecord(BASE + n, "", 1, (Neighbour(n + 1), Neighbour(9))) for n in range(2)]
    ways = seen_by(0, shared).ways()
    assert set(ways) == {1, 9}
    assert ways[1].onward == {9: (9,)}


def test_an_older_record_and_one_that_cannot_be_true_are_refused() -> None:
    made = seen_by(0, records(2, {(0, 1): (1, 1)}, generation=5))
    assert not made.learn(NodeRecord(BASE + 1, "", 5))
    assert not made.learn(NodeRecord(7, "", 9))
    assert not made.learn(NodeRecord(BASE + 1, "", 6, tuple(Neighbour(n + 1) for n in range(MAX_NEIGHBOURS + 1))))
    assert made.learn(NodeRecord(BASE + 1, "", 6))


def test_what_cannot_be_reached_is_forgotten_after_the_lease() -> None:
    made = seen_by(0, records(3, {(0, 1): (1, 1), (1, 2): (1, 1)}))
    assert made.expire(0) is None
    made.learn(NodeRecord(BASE + 1, "r1", 2, (Neighbour(2), Neighbour(BASE))))
    assert made.expire(SECOND) == SECOND + LEASE_NS
    assert made.expire(LEASE_NS) == SECOND + LEASE_NS
    assert made.expire(SECOND + LEASE_NS) is None
    assert set(made.records) == {BASE, BASE + 1}


def test_the_signature_is_that_of_what_is_reached() -> None:
    """Left-over records do not count, and each change does."""
    found = records(2, {(0, 1): (1, 1)})
    one, other = seen_by(0, found), seen_by(1, [*found, NodeRecord(BASE + 9, "gone")])
    assert one.signature() == other.signature()
    before = one.signature()
    one.learn(NodeRecord(BASE + 1, "r1", 2, (Neighbour(2, 2, 1), Neighbour(BASE))))
    assert one.signature() != before


def agrees(near: Way, far: Way, far_node: int) -> bool:
    return path_name(near.name, far_node) == far.name


def used(ways: dict[int, Way]) -> list[tuple[int, int]]:
    """The links over which routers that know these ways from a domain send its data."""
    return [
        (node, following)
        for node, way in ways.items()
        for following in way.onward
        if following in ways and agrees(way, ways[following], following)
    ]


def trees(maps: list[NetworkMap]) -> dict[int, dict[int, Way]]:
    """The ways of each domain, by router."""
    found: dict[int, dict[int, Way]] = {}
    for one in maps:
        for domain, way in one.ways().items():
            found.setdefault(domain, {})[one.own] = way
    return found


@pytest.mark.rows("R-083", "R-084")
@given(networks())
def test_equal_maps_have_equal_trees_that_reach_each_domain_once(network: tuple[int, Links]) -> None:
    """Each router is entered once, from the one that all think of, and each domain is behind one portal."""
    count, links = network
    found = records(count, links)
    maps = [seen_by(router, list(reversed(found)) if router % 2 else found) for router in range(count)]
    assert len({one.signature() for one in maps}) == 1
    for domain, ways in trees(maps).items():
        edges = used(ways)
        assert sorted(far for _, far in edges) == sorted(node for node in ways if node != BASE + domain - 1)
        assert all(ways[far].entry == near for near, far in edges)
        assert all(ways[near].cost < ways[far].cost for near, far in edges)
        for other in range(1, count + 1):
            exits = [node for node, way in ways.items() if other in way.onward]
            assert exits == ([BASE + other - 1] if other != domain else [])
            for way in ways.values():
                assert sum(other in behind for behind in way.onward.values()) <= 1


@given(st.data())
def test_no_data_runs_in_a_circle_while_maps_differ(data: st.DataObject) -> None:
    """Each router has a map of its own choice of three networks; what is sent over links has no circle."""
    shapes = data.draw(st.lists(networks(), min_size=3, max_size=3))
    count = max(one for one, _ in shapes)
    made = [records(count, links) for _, links in shapes]
    maps = [seen_by(router, data.draw(st.sampled_from(made))) for router in range(count)]
    for ways in trees(maps).values():
        edges = used(ways)
        entries = {far: near for near, far in edges}
        assert len(entries) == len(edges), "a router has two entries"
        for start in entries:
            node, steps = start, 0
            while node in entries and steps <= count:
                node, steps = entries[node], steps + 1
            assert steps <= count, "a circle"


def test_further_away_in_both_maps_would_not_be_enough() -> None:
    """Four routers, two with an old and two with a new map: both maps agree on each step of a circle."""
    distances = {"old": "bcda", "new": "dabc"}  # from the domain on
    maps = {"a": "new", "b": "new", "c": "old", "d": "old"}
    for near, far in pairwise("abcda"):
        assert all(distances[maps[end]].index(near) < distances[maps[end]].index(far) for end in (near, far))
