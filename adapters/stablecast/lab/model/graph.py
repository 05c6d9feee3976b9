"""Hold the reachable states and labelled edges of a model or of the core, and compare two graphs.

A state is its canonical text, an edge an action between two states. Lists of states begin with the initial one. Edges
are kept by index, so that a graph of a hundred thousand states fits in memory.

Three digests identify a graph: of its states, of its edges, and of its edges with their actions. Equal counts prove
nothing, because a reversed tie-break keeps them.
"""

import gzip
import hashlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import attrs

from stablecast.lab.model.canonical import digest

Edge = tuple[str, int]
"""An action and the state it leads to."""


@attrs.frozen
class Digests:
    """Summarize a graph. `depths` are the numbers of states at each distance from the initial one."""

    nodes: int
    edges: int
    depths: tuple[int, ...]
    states: str
    steps: str
    actions: str


@attrs.define
class Graph:
    """Hold the texts of the states and, by state, its outgoing edges."""

    states: list[str] = attrs.field(factory=list)
    edges: list[list[Edge]] = attrs.field(factory=list)
    index: dict[str, int] = attrs.field(factory=dict)

    def add(self, state: str) -> tuple[int, bool]:
        """Return the state's index, and whether it is new."""
        at = self.index.setdefault(state, len(self.states))
        new = at == len(self.states)
        if new:
            self.states.append(state)
            self.edges.append([])
        return at, new

    def digests(self) -> Digests:
        names = [hashlib.sha256(state.encode()).hexdigest() for state in self.states]
        labelled = {(names[at], action, names[to]) for at, edges in enumerate(self.edges) for action, to in edges}
        return Digests(
            nodes=len(self.states),
            edges=len(labelled),
            depths=self.depths(),
            states=digest(self.states),
            steps=digest(f"{source}\t{target}" for source, _, target in labelled),
            actions=digest("\t".join(edge) for edge in labelled),
        )

    def depths(self) -> tuple[int, ...]:
        """Return how many states are 0, 1, ... steps from the initial one."""
        counts: list[int] = []
        for _, depth in self.walk():
            counts += [0] * (depth + 1 - len(counts))
            counts[depth] += 1
        return tuple(counts)

    def walk(self) -> Iterator[tuple[int, int]]:
        """Yield states breadth first, with their depth."""
        depths = {0: 0}
        queue = deque(depths)
        while queue:
            at = queue.popleft()
            yield at, depths[at]
            for _, to in self.edges[at]:
                if to not in depths:
                    depths[to] = depths[at] + 1
                    queue.append(to)

    def write(self, path: Path) -> None:
        """Write each state's text, then its edges with the numbers of their target states."""
        numbers = {at: number for number, (at, _) in enumerate(self.walk())}
        with gzip.GzipFile(path, "wb", mtime=0) as kept:
            for at in numbers:
                edges = sorted({(action, numbers[to]) for action, to in self.edges[at]})
                lines = [self.states[at], *(f"\t{to}\t{action}" for action, to in edges)]
                kept.write(("\n".join(lines) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> "Graph":
        graph = cls()
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("\t"):
                    to, action = line[1:-1].split("\t")
                    graph.edges[-1].append((action, int(to)))
                else:
                    graph.add(line[:-1])
        return graph

    def outgoing(self, state: str) -> set[tuple[str, str]]:
        """Return the enabled actions of a state, each with the state it leads to."""
        return {(action, self.states[to]) for action, to in self.edges[self.index[state]]}

    def path(self, state: str) -> list[str]:
        """Return a shortest sequence of actions from the initial state."""
        came: dict[int, tuple[int, str]] = {}
        goal = self.index[state]
        for at, _ in self.walk():
            for action, to in self.edges[at]:
                if to and to not in came:
                    came[to] = (at, action)
        actions: list[str] = []
        while goal:
            goal, action = came[goal]
            actions.append(action)
        return actions[::-1]


@attrs.frozen
class GraphDifference:
    """Describe where two graphs differ first: the path, the state, and the actions that only one of them enables."""

    path: tuple[str, ...]
    state: str
    only_model: tuple[tuple[str, str], ...]
    only_core: tuple[tuple[str, str], ...]


def parted(model: Graph, core: Graph, state: str) -> GraphDifference | None:
    """Return how two graphs differ in the actions of one state."""
    theirs = model.outgoing(state) if state in model.index else set()
    ours = core.outgoing(state) if state in core.index else set()
    if theirs == ours:
        return None
    return GraphDifference(tuple(core.path(state)), state, tuple(sorted(theirs - ours)), tuple(sorted(ours - theirs)))
