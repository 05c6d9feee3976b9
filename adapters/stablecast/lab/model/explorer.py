"""The core's reachable states, breadth first, seen through its machines' abstraction.

A `World` is everything that a model has: the real machines, and network, disk, time and crashes as explicit state. It
says which actions are possible, does one of them, and says what the model sees of it. The explorer copies the world
for every action; worlds that look the same are one state.

That is sound only if what the abstraction forgets does not matter: two worlds that look the same must have successors
that look the same. The explorer checks it on up to `twins` further worlds of every state, and refuses the abstraction
otherwise. A *twin* came to the state by another way and differs in something that the abstraction forgets: one that is
equal in everything would show nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

import attrs

from stablecast.lab.model.canonical import Value, text
from stablecast.lab.model.clone import alike, clone
from stablecast.lab.model.errors import ForgetfulError, ModelError
from stablecast.lab.model.graph import Difference, Graph, difference, parted

Action = tuple[Value, ...]
"""Its name in the model, then its parameters."""
State = Mapping[str, Value]
"""The values of a model's variables."""
Invariant = Callable[[State], bool]


class World(Protocol):
    """A model's instance around the core's machines. Built by its module's class from the constants."""

    def abstract(self) -> State:
        """What the model sees."""
        ...

    def actions(self) -> Iterable[Action]:
        """What can happen now, in an order that depends on nothing else."""
        ...

    def do(self, action: Action) -> None:
        """Let it happen."""
        ...


WorldT = TypeVar("WorldT", bound=World)


@attrs.frozen
class Violation:
    """An invariant that does not hold, and how to get there."""

    invariant: str
    path: tuple[str, ...]
    state: str


@attrs.define
class Exploration:
    """A graph, how many twins were compared, the first violation of each invariant, and where it parts from a model."""

    graph: Graph
    twins: int = 0
    difference: Difference | None = None
    violations: dict[str, Violation] = attrs.field(factory=dict)


@attrs.define
class _Memo:
    """Texts of values by variable: most actions change few variables, and most values recur."""

    texts: dict[tuple[str, Value], str] = attrs.field(factory=dict)

    def state(self, state: State) -> str:
        """The canonical text of a state, as of a record of its variables."""
        parts: list[str] = []
        for name in sorted(state):
            value = state[name]
            key = (name, value)
            known = self.texts.get(key)
            if known is None:
                known = self.texts[key] = f'["{name}",{text(value)}]'
            parts.append(known)
        return '["fn",' + ",".join(parts) + "]"


def explore(
    world: World,
    invariants: Mapping[str, Invariant] | None = None,
    limit: int = 1_000_000,
    twins: int = 0,
    model: Graph | None = None,
) -> Exploration:
    """Every state that can be reached from `world`, up to `limit`; with a model, only up to the first difference.

    Raises:
        ModelError: If there are more.
        ForgetfulError: If two worlds look the same and behave differently.
    """
    return _Explorer(dict(invariants or {}), limit, twins, model).run(world)


@attrs.define
class _Explorer:
    invariants: dict[str, Invariant]
    limit: int
    twins: int
    model: Graph | None
    memo: _Memo = attrs.field(factory=_Memo)
    found: Exploration = attrs.field(factory=lambda: Exploration(Graph()))
    seen: dict[int, int] = attrs.field(factory=dict)

    def run(self, world: World) -> Exploration:
        graph = self.found.graph
        level = [(self._enter(world.abstract())[0], world)]
        if self.model is not None and self.model.states[0] != graph.states[0]:
            self.found.difference = difference(self.model, graph)
            return self._told()
        twins: list[tuple[int, World]] = []
        while level:
            following: list[tuple[int, World]] = []
            for at, here in level:
                for action, there in self._steps(here):
                    to, new = self._enter(there.abstract())
                    graph.edges[at].append((action, to))
                    if new:
                        following.append((to, there))
                    elif self.seen.get(to, 0) < self.twins and not _is_first(to, there, following):
                        self.seen[to] = self.seen.get(to, 0) + 1
                        twins.append((to, there))
                if self._parts(at):
                    return self._told()
            level = following
            known = following[0][0] if following else len(graph.states)
            for at, twin in twins:
                if at < known:
                    self._compare(at, twin)
            twins = [twin for twin in twins if twin[0] >= known]
        return self._told()

    def _told(self) -> Exploration:
        """What was found, with the ways to it."""
        for name, violation in self.found.violations.items():
            path = tuple(self.found.graph.path(violation.state))
            self.found.violations[name] = attrs.evolve(violation, path=path)
        return self.found

    def _parts(self, at: int) -> bool:
        """Whether the core can do something else than the model in a state."""
        if self.model is not None:
            self.found.difference = parted(self.model, self.found.graph, self.found.graph.states[at])
        return self.found.difference is not None

    def _steps(self, world: World) -> Iterable[tuple[str, World]]:
        for action in world.actions():
            there = clone(world)
            there.do(action)
            yield label(action), there

    def _enter(self, state: State) -> tuple[int, bool]:
        graph = self.found.graph
        at, new = graph.add(self.memo.state(state))
        if new:
            if at >= self.limit:
                raise ModelError(f"more than {self.limit} states; give the configuration smaller constants")
            for name, holds in self.invariants.items():
                if name not in self.found.violations and not holds(state):
                    self.found.violations[name] = Violation(name, (), graph.states[at])
        return at, new

    def _compare(self, at: int, twin: World) -> None:
        """Compare a twin with what its state can do."""
        graph = self.found.graph
        try:
            theirs = {(action, self.memo.state(there.abstract())) for action, there in self._steps(twin)}
        except Exception as error:
            # The state's first world took its steps before, so what fails here is what the abstraction forgets.
            raise ForgetfulError(
                f"two worlds look the same and one fails ({type(error).__name__}: {error}) in {graph.states[at]}"
            ) from error
        ours = graph.outgoing(graph.states[at])
        if theirs != ours:
            odd = sorted(action for action, _ in theirs ^ ours)
            way = ", ".join(graph.path(graph.states[at]))
            raise ForgetfulError(
                f"two worlds look the same and differ in {', '.join(odd[:3])}: the abstraction forgets something "
                f"that matters, in {graph.states[at]} (reached by {way})"
            )
        self.found.twins += 1


def _is_first(at: int, world: World, entered: list[tuple[int, World]]) -> bool:
    """Whether a world that came to a state is the very one that entered it; that of an older state is gone."""
    place = at - entered[0][0] if entered else -1
    return place >= 0 and alike(world, entered[place][1])


def label(action: Action) -> str:
    """An action as a model's graph names it.

    >>> label(("Deliver", 1, "ask"))
    'Deliver(1,"ask")'
    """
    name, *values = action
    return f"{name}({','.join(map(text, values))})" if values else str(name)
