"""Explore the core's reachable states breadth first, through its machines' abstraction.

A world holds everything that a model has: the real machines, with network, disk, time and crashes as explicit state. It
lists its enabled actions, performs one, and returns the model's variables. The explorer copies the world for every
action. Worlds with equal variables are one state.

That is sound only if equal variables imply equal successors. The explorer checks this on up to `twins` further worlds
of every state, and refuses the abstraction otherwise. A *twin* reached the state by another way and differs from the
first world in a fact that the abstraction drops.
"""

import gc
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

import attrs

from stablecast.lab.model.canonical import ForgetfulError, ModelError, Value, text
from stablecast.lab.model.clone import alike, clone
from stablecast.lab.model.graph import Graph, GraphDifference, parted

Action = tuple[Any, ...]
"""The name of an action in the model, then its parameters."""
State = Mapping[str, Value]
"""The values of a model's variables."""


class ModelWorld(Protocol):
    """Offer a model's instance around the core's machines. Its module's class builds it from the constants."""

    def abstract(self) -> State:
        """Return the model's variables."""

    def actions(self) -> Iterable[Action]:
        """Yield the enabled actions, in an order that depends on nothing else."""

    def do(self, action: Action) -> None: ...


WorldT = TypeVar("WorldT", bound=ModelWorld)


@attrs.define
class Exploration:
    """Hold a graph, the number of compared twins, and the first difference from the model's."""

    graph: Graph
    twins: int = 0
    difference: GraphDifference | None = None


def explore(world: ModelWorld, *, limit: int = 1_000_000, twins: int = 0, model: Graph | None = None) -> Exploration:
    """Return every state reachable from `world`; with a model, only up to the first difference.

    Raises:
        ModelError: there are more than `limit` states.
        ForgetfulError: two worlds have equal variables and behave differently.
    """
    collects = gc.isenabled()
    gc.disable()  # Worlds have no cycles, and a collection visits all that wait: 15 % of the time.
    try:
        return _Explorer(limit, twins, model).run(world)
    finally:
        if collects:
            gc.enable()


@attrs.define
class _Explorer:
    """Explore one world. `texts` caches those of values by variable: most actions change few, and most values recur."""

    limit: int
    twins: int
    model: Graph | None
    texts: dict[tuple[str, Value], str] = attrs.field(factory=dict)
    found: Exploration = attrs.field(factory=lambda: Exploration(Graph()))
    seen: dict[int, int] = attrs.field(factory=dict)

    def run(self, world: ModelWorld) -> Exploration:
        graph = self.found.graph
        level = [(self._enter(world.abstract())[0], world)]
        if self.model is not None and self.model.states[0] != graph.states[0]:
            begins = (("initial", self.model.states[0]),), (("initial", graph.states[0]),)
            self.found.difference = GraphDifference((), "", *begins)
            return self.found
        twins: list[tuple[int, ModelWorld]] = []
        while level:
            following: list[tuple[int, ModelWorld]] = []
            for at, here in level:
                for action, there in self._steps(here):
                    to, new = self._enter(there.abstract())
                    graph.edges[at].append((action, to))
                    if new:
                        following.append((to, there))
                    elif self.seen.get(to, 0) < self.twins and not _is_first(to, there, following):
                        self.seen[to] = self.seen.get(to, 0) + 1
                        twins.append((to, there))
                if self._differs(at):
                    return self.found
            level = following
            known = following[0][0] if following else len(graph.states)
            for at, twin in twins:
                if at < known:
                    self._compare(at, twin)
            twins = [twin for twin in twins if twin[0] >= known]
        return self.found

    def _differs(self, at: int) -> bool:
        """Return whether core and model enable different actions in a state."""
        if self.model is not None:
            self.found.difference = parted(self.model, self.found.graph, self.found.graph.states[at])
        return self.found.difference is not None

    def _steps(self, world: ModelWorld) -> Iterable[tuple[str, ModelWorld]]:
        for action in world.actions():
            there = clone(world)
            there.do(action)
            yield label(action), there

    def _enter(self, state: State) -> tuple[int, bool]:
        graph = self.found.graph
        at, new = graph.add(self._text(state))
        if new and at >= self.limit:
            raise ModelError(f"more than {self.limit} states; give the configuration smaller constants")
        return at, new

    def _text(self, state: State) -> str:
        """Return the canonical text of a state, as that of a record of its variables."""
        parts: list[str] = []
        for name in sorted(state):
            value = state[name]
            key = (name, value)
            known = self.texts.get(key)
            if known is None:
                known = self.texts[key] = f'["{name}",{text(value)}]'
            parts.append(known)
        return '["fn",' + ",".join(parts) + "]"

    def _compare(self, at: int, twin: ModelWorld) -> None:
        graph = self.found.graph
        try:
            theirs = {(action, self._text(there.abstract())) for action, there in self._steps(twin)}
        except Exception as error:
            # The first world of the state took these steps before, so the abstraction drops the cause of this failure.
            raise ForgetfulError(
                f"two worlds have equal variables and one fails ({type(error).__name__}: {error}) in {graph.states[at]}"
            ) from error
        ours = graph.outgoing(graph.states[at])
        if theirs != ours:
            odd = sorted(action for action, _ in theirs ^ ours)
            way = ", ".join(graph.path(graph.states[at]))
            raise ForgetfulError(
                f"two worlds have equal variables and differ in {', '.join(odd[:3])}: the abstraction drops a fact "
                f"that matters, in {graph.states[at]} (reached by {way})"
            )
        self.found.twins += 1


def _is_first(at: int, world: ModelWorld, entered: list[tuple[int, ModelWorld]]) -> bool:
    """Return whether a world is the very one that entered its state. The world of an older state no longer exists."""
    place = at - entered[0][0] if entered else -1
    return place >= 0 and alike(world, entered[place][1])


def label(action: Action) -> str:
    """Return an action as a model's graph names it.

    >>> label(("Deliver", 1, "ask"))
    'Deliver(1,"ask")'
    """
    name, *values = action
    return f"{name}({','.join(map(text, values))})" if values else str(name)
