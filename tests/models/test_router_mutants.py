"""Faults of linked routers show as another graph than that of their model."""

from typing import Any

import pytest

from stablecast.transports.routing import network_map
from stablecast.transports.routing.duplicates import NumberWindow
from stablecast.transports.routing.interest import DomainInterest
from stablecast.transports.routing.network import Network
from stablecast.transports.routing.network_map import MAX_DOMAIN, NetworkMap, NodeRecord
from stablecast.transports.routing.proxies import RoutedSource
from stablecast.transports.routing.router import Router
from stablecast.transports.routing.sources import Sources
from tests.models.planted import Patch, changed, is_seen

_tree = network_map.tree
_take = NumberWindow.take
_learn = NetworkMap.learn
_begin = Network.begin
_end = Network.end
_move_entry = Sources._move_entry
_open = Sources._open


def _nothing(self: Any, *words: Any) -> Any:
    """Do nothing, in place of a step."""
    return []


def _older(self: NetworkMap, record: NodeRecord) -> bool:
    """Take a record of the generation before."""
    known = self.records.get(record.node)
    if known is not None and known.generation == record.generation + 1:
        del self.records[record.node]
    return _learn(self, record)


def _highest(edges: Any, domain: int) -> Any:
    """Of equal paths, the one with the highest nodes counts."""
    turned = {_turned(node): {_turned(other): cost for other, cost in beside.items()} for node, beside in edges.items()}
    return {_turned(node): (cost, tuple(map(_turned, path))) for node, (cost, path) in _tree(turned, domain).items()}


def _turned(node: int) -> int:
    return node if node <= MAX_DOMAIN else 2 * (MAX_DOMAIN + 2) - node


def _learn_in_silence(self: Network, number: int, record: NodeRecord) -> bool:
    return self.map.learn(record)


def _own_record(self: Network, number: int) -> None:
    self._send(number, self.map.records[self.node])


def _from_any_link(self: Network, domain: int, number: int) -> bool:
    return self.portals[number].link is not None


def _all_links(self: Network, domain: int) -> list[int]:
    return [number for number, _ in self.links() if self.portals[number].forwards]


def _all_pass(self: NumberWindow, first: int, count: int) -> list[tuple[int, int]]:
    _take(self, first, count)
    return [(0, count)]


def _new_exits(self: Sources, source: RoutedSource) -> None:
    self._close_all(source)
    _move_entry(self, source)


def _without_mark(self: Sources, source: RoutedSource, record: Any, number: int) -> None:
    source.high = None
    _open(self, source, record, number)


def _say_nothing(self: Network, *words: Any) -> None:
    """Tell nothing."""


def _end_in_silence(self: Network, number: int, now: int) -> list[Any]:
    _end(self, number, now)
    return []


def _counts_at_once(self: Network, number: int, node: int, name: str, now: int) -> bool:
    begun = _begin(self, number, node, name, now)
    self.join(number)
    return begun


MUTANTS: dict[str, tuple[str, Patch]] = {
    "an older record counts": ("graph_small", changed(NetworkMap, "learn", _older)),
    "of equal paths the highest counts": ("graph_tie", lambda patch: patch.setattr(network_map, "tree", _highest)),
    "records are not passed on": ("graph_small", changed(Network, "_on_record", _learn_in_silence)),
    "a new link is told of its router alone": ("graph_small", changed(Network, "_send_records", _own_record)),
    "paths are not told": ("graph_small", changed(Network, "_tell_paths", _say_nothing)),
    "interest is held for ever": ("graph_chain", changed(Network, "let_go", _nothing)),
    "interest counts whatever link it came by": ("graph_small", changed(Network, "enters", _from_any_link)),
    "interest goes to all links": ("graph_small", changed(Network, "children", _all_links)),
    "interest that is taken back stays": ("graph_chain", changed(DomainInterest, "ends", lambda self, query: False)),
    "an exit lets numbers pass twice": ("graph_ring", changed(NumberWindow, "take", _all_pass)),
    "a source that comes in elsewhere begins new exits": ("graph_small", changed(Sources, "_move_entry", _new_exits)),
    "a new exit hears nothing of the newest number": ("graph_chain", changed(Sources, "_open", _without_mark)),
    "what a link repeated stays when it ends": ("graph_chain", changed(Network, "end", _end_in_silence)),
    "the end of a source on a link is not told": ("graph_lives", changed(Network, "repeat", _say_nothing)),
    "a lost source stays": ("graph_lives", changed(Sources, "end_lost", _nothing)),
    "what is told before it is wanted is forgotten": ("graph_chain", changed(Router, "_offer", _nothing)),
    "a link counts at once": ("graph_small", changed(Network, "begin", _counts_at_once)),
}
"""Each fault, and a graph that shows it. The rule of paths matters from four routers on, of which there is no graph."""


@pytest.mark.rows("R-080", "R-083")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_of_linked_routers_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, patch = MUTANTS[name]
    assert is_seen(patch, monkeypatch, f"Router/{graph}")
