"""The reachable states and labelled edges of a model, from whichever side, and whether two sides agree.

A state is its canonical text, an edge an action between two states. Lists of states begin with the initial one; edges
are kept by index, so that a graph of a hundred thousand states fits in memory.

Three digests name a graph: of its states, of its edges, and of its edges with their actions. A line of the last two is
the digests of two states' texts with the action between them. Counts prove nothing: a reversed tie-break keeps them.
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
    """What a graph is, in short. `depths`: how many states are so many steps from the initial one."""

    nodes: int
    edges: int
    depths: tuple[int, ...]
    states: str
    steps: str
    actions: str


@attrs.define
class Graph:
    """Texts of the states; by state, the edges that leave it."""

    states: list[str] = attrs.field(factory=list)
    edges: list[list[Edge]] = attrs.field(factory=list)
    index: dict[str, int] = attrs.field(factory=dict)

    def add(self, state: str) -> tuple[int, bool]:
        """The state's index, and whether it is new."""
        at = self.index.setdefault(state, len(self.states))
        new = at == len(self.states)
        if new:
            self.states.append(state)
            self.edges.append([])
        return at, new

    def digests(self) -> Digests:
        """See the module."""
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
        """How many states are 0, 1, ... steps from the initial one."""
        counts: list[int] = []
        for _, depth in self.walk():
            counts += [0] * (depth + 1 - len(counts))
            counts[depth] += 1
        return tuple(counts)

    def walk(self) -> Iterator[tuple[int, int]]:
        """States breadth first, with their depth."""
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
        """Keep the graph: each state's text, below it its edges, each with the number of the state it leads to."""
        numbers = {at: number for number, (at, _) in enumerate(self.walk())}
        with gzip.GzipFile(path, "wb", mtime=0) as kept:
            for at in numbers:
                edges = sorted({(action, numbers[to]) for action, to in self.edges[at]})
                lines = [self.states[at], *(f"\t{to}\t{action}" for action, to in edges)]
                kept.write(("\n".join(lines) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> "Graph":
        """A graph that was kept."""
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
        """The actions that are possible in a state, each with the state it leads to."""
        return {(action, self.states[to]) for action, to in self.edges[self.index[state]]}

    def path(self, state: str) -> list[str]:
        """A shortest sequence of actions from the initial state."""
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
class Difference:
    """Where two graphs part first: the actions that lead there, the state, and what only one side can do in it."""

    path: tuple[str, ...]
    state: str
    only_model: tuple[tuple[str, str], ...]
    only_core: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return attrs.asdict(self)


def parted(model: Graph, core: Graph, state: str) -> Difference | None:
    """How the two graphs differ in what is possible in one state."""
    theirs = model.outgoing(state) if state in model.index else set()
    ours = core.outgoing(state) if state in core.index else set()
    if theirs == ours:
        return None
    return Difference(tuple(core.path(state)), state, tuple(sorted(theirs - ours)), tuple(sorted(ours - theirs)))


def difference(model: Graph, core: Graph) -> Difference | None:
    """The first difference in the order of steps from the initial state; None if the graphs are equal."""
    if model.states[0] != core.states[0]:
        return Difference((), "", (("initial", model.states[0]),), (("initial", core.states[0]),))
    found = (parted(model, core, core.states[at]) for at, _ in core.walk())
    return next((one for one in found if one is not None), None)
