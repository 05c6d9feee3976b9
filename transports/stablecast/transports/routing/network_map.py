"""The map of a network of routers, and the ways that it has (D-3).

Each router floods one record of itself: its name, and its neighbours with the costs of the portals between. Neighbours
are domains, whose node is their number, and other routers, whose nodes are random and above all numbers. Two routers
are joined only if both say so; what cannot be reached does not count.

For each domain there is one tree of shortest paths from it, the same on all routers with one map: of equal costs the
path with the lowest nodes counts, compared from the domain on. Data of a domain goes down its tree, and so does its
interest. Domains are leaves: routers that share one tell each other nothing there.

While maps differ, two neighbours may think of different trees. So each tells the other the *name* of its path from each
domain, a hash that grows node by node. A router takes data from a link only where its path is that of the other side
and one node more. Paths grow along every chain of such links, so no chain is a circle, whatever the maps are. That the
next node is further away in both maps would not be enough: of four routers, two with an old and two with a new map,
each pair may agree about that, and the four be a circle.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from heapq import heappop, heappush

import attrs

from stablecast.core.machine.units import SECOND

MAX_DOMAIN = 0xFFFF_FFFF
"""The largest number of a domain; the nodes of routers are larger."""

MAX_NODES = 1_024
"""Routers of one map; further ones are refused."""

MAX_NEIGHBOURS = 3_000
"""Neighbours of one router, which fit one message."""

LEASE_NS = 30 * SECOND
"""Time for which the record of a router that cannot be reached is kept, in nanoseconds."""

_PATH, _NEIGHBOUR, _RECORD = struct.Struct(">QQ"), struct.Struct(">QII"), struct.Struct(">QI")

Path = tuple[int, ...]
"""Nodes, from a domain on."""


@attrs.frozen(order=True)
class Neighbour:
    """A node beside a router, and the costs of the router's portal in between for what comes in and what leaves."""

    node: int
    cost_in: int = 1
    cost_out: int = 1


@attrs.frozen
class NodeRecord:
    """What a router says of itself; of two records of one node that of the higher generation counts."""

    node: int
    name: str = ""
    generation: int = 1
    neighbours: tuple[Neighbour, ...] = ()


def path_name(before: int, node: int) -> int:
    """Return the name of a path with one node more, 64 bits; the name of no path is 0."""
    return int.from_bytes(blake2b(_PATH.pack(before, node), digest_size=8).digest())


@attrs.frozen
class Way:
    """What one router knows of the tree of a domain.

    Attributes:
        entry: The node before this router: what comes from the domain comes from there.
        cost: The costs of all portals from the domain to this router.
        name: The name of the path.
        onward: The next nodes after this router, each with the domains behind it.
        paths: The nodes from the domain to each of these domains.
    """

    entry: int
    cost: int
    name: int
    onward: Mapping[int, tuple[int, ...]]
    paths: Mapping[int, Path]


@attrs.frozen(eq=False)
class Ways(Mapping[int, Way]):
    """The ways of all domains that one router reaches; each is calculated when it is asked for.

    Attributes:
        edges: The costs from node to node.
        own: The router.
    """

    edges: Mapping[int, Mapping[int, int]]
    own: int
    _domains: dict[int, None] = attrs.field(init=False)
    _found: dict[int, Way] = attrs.field(factory=dict, init=False)

    @_domains.default
    def _reached(self) -> dict[int, None]:
        return dict.fromkeys(sorted(node for node in _spread(self.edges, self.own) if node <= MAX_DOMAIN))

    def __getitem__(self, domain: int) -> Way:
        """Return the way of a domain. Raises KeyError if it is not reached."""
        if domain not in self._found:
            if domain not in self._domains:
                raise KeyError(domain)
            self._found[domain] = _way(self.edges, domain, self.own)
        return self._found[domain]

    def __iter__(self) -> Iterator[int]:
        return iter(self._domains)

    def __len__(self) -> int:
        return len(self._domains)


@attrs.define
class NetworkMap:
    """The map as one router knows it; `own` is its node.

    Attributes:
        records: The newest record of each router.
        lost: Routers that cannot be reached, and since when.
    """

    own: int
    records: dict[int, NodeRecord] = attrs.field(factory=dict)
    lost: dict[int, int] = attrs.field(factory=dict, init=False)

    def learn(self, record: NodeRecord) -> bool:
        """Note a record, and return whether it is new. One that cannot be true, or is too much, is not."""
        known = self.records.get(record.node)
        if record.node <= MAX_DOMAIN or (known is not None and known.generation >= record.generation):
            return False
        if (known is None and len(self.records) == MAX_NODES) or len(record.neighbours) > MAX_NEIGHBOURS:
            return False
        self.records[record.node] = record
        return True

    def expire(self, now: int) -> int | None:
        """Forget routers that could not be reached for the lease, and return when the next one is to be forgotten."""
        reached = self.reached()
        self.lost = {node: self.lost.get(node, now) for node in self.records if node not in reached}
        for node, since in tuple(self.lost.items()):
            if now >= since + LEASE_NS:
                del self.records[node], self.lost[node]
        return min(self.lost.values()) + LEASE_NS if self.lost else None

    def reached(self) -> frozenset[int]:
        """Return the routers that this one reaches, itself included."""
        return frozenset(node for node in _spread(self._edges(), self.own) if node > MAX_DOMAIN) | {self.own}

    def signature(self) -> int:
        """Return a checksum of what is reached, 32 bits: equal on all routers that agree."""
        found = blake2b(digest_size=4)
        for node in sorted(self.reached() & self.records.keys()):
            record = self.records[node]
            found.update(_RECORD.pack(node, record.generation))
            for one in sorted(record.neighbours):
                found.update(_NEIGHBOUR.pack(one.node, one.cost_in, one.cost_out))
        return int.from_bytes(found.digest())

    def ways(self) -> "Ways":
        """Return the way of each domain that this router reaches, by its number, as the map is now."""
        return Ways(self._edges(), self.own)

    def _edges(self) -> dict[int, dict[int, int]]:
        """Return the cost from each node to each of its neighbours."""
        told = {node: {one.node: one for one in record.neighbours} for node, record in self.records.items()}
        edges: dict[int, dict[int, int]] = {node: {} for node in told}
        for node, neighbours in told.items():
            for one in neighbours.values():
                if one.node <= MAX_DOMAIN:
                    edges[node][one.node] = one.cost_out
                    edges.setdefault(one.node, {})[node] = one.cost_in
                elif (back := told.get(one.node, {}).get(node)) is not None:
                    edges[node][one.node] = one.cost_out + back.cost_in
        return edges


def tree(edges: Mapping[int, Mapping[int, int]], domain: int) -> dict[int, tuple[int, Path]]:
    """Return cost and nodes of the path from a domain to each node that it reaches."""
    found: dict[int, tuple[int, Path]] = {}
    waiting: list[tuple[int, Path]] = [(0, (domain,))]
    while waiting:
        cost, path = heappop(waiting)
        node = path[-1]
        if node in found:
            continue
        found[node] = cost, path
        for following, more in edges.get(node, {}).items():
            if following > MAX_DOMAIN and following not in found:
                heappush(waiting, (cost + more, (*path, following)))
    for node, (cost, path) in tuple(found.items()):
        for leaf, more in edges.get(node, {}).items() if node != domain else ():
            if leaf <= MAX_DOMAIN and leaf != domain:
                found[leaf] = min(found.get(leaf, (cost + more, (*path, leaf))), (cost + more, (*path, leaf)))
    return found


def _way(edges: Mapping[int, Mapping[int, int]], domain: int, own: int) -> Way:
    """Return the way of a domain that a router reaches, and so the domain the router."""
    paths = tree(edges, domain)
    cost, path = paths[own]
    name = 0
    for node in path:
        name = path_name(name, node)
    onward: dict[int, tuple[int, ...]] = {}
    onto: dict[int, Path] = {}
    place = len(path)
    for node, (_, other) in sorted(paths.items()):
        if len(other) > place and other[:place] == path:
            behind = onward.setdefault(other[place], ())
            if node <= MAX_DOMAIN:
                onward[other[place]] = (*behind, node)
                onto[node] = other
    return Way(path[-2], cost, name, onward, onto)


def _spread(edges: Mapping[int, Iterable[int]], start: int) -> set[int]:
    """Return the nodes that are reached from a router; no path leads through a domain."""
    found, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        if node > MAX_DOMAIN:
            new = [one for one in edges.get(node, ()) if one not in found]
            found.update(new)
            waiting += new
    return found
