"""Define the steps of a view, extract them from a graph, and store them."""

import json
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.converter import Endpoint
from stablecast.lab.model import catalog, equal
from stablecast.lab.model.canonical import ModelError, compact, plain
from stablecast.lab.model.catalog import Configuration
from stablecast.lab.model.graph import Graph

RECORD = "views.json"

State = Mapping[str, Any]
"""A model's variables as plain values."""
Constants = Mapping[str, Any]


@attrs.frozen(order=True)
class ModelStep:
    """Describe the view before and after an action, and the messages of the endpoint (`says`, where they matter)."""

    before: str
    action: str
    after: str
    says: str = ""

    @property
    def silent(self) -> bool:
        """True if the view does not change and no message is sent."""
        return self.before == self.after and not self.says


@attrs.frozen
class Seen:
    """Describe a record in a view: the owner of the window, and the actions that the record may stand for.

    `first` to below `stop` are the equal message numbers, in a view of numbers.
    """

    whose: str
    before: str
    actions: frozenset[str]
    after: str
    says: str = ""
    first: int = -1
    stop: int = 0

    @property
    def window(self) -> str:
        if self.first < 0:
            return self.whose
        last = self.stop - 1
        return f"{self.whose} number {last}" if last == self.first else f"{self.whose} numbers {self.first} to {last}"


@attrs.frozen
class Outside:
    """Report that a record does what the model does not cover."""

    why: str


class ViewWatch(Protocol):
    """Follow the view of one trace. `scope` selects the steps that judge it."""

    @property
    def scope(self) -> str: ...

    def take(self, event: Input, effects: Iterable[Effect]) -> Iterator[Seen | Outside]:
        """Yield what a record changes."""


@attrs.frozen
class TraceView(ABC):
    """Define a view of a model, and of the traces of one role.

    `name` is the model and the part of it that is seen. One record may stand for `most` steps, because a run of
    messages is several steps of a model.
    """

    name: str
    role: Role
    most: int = 1

    @property
    def model(self) -> str:
        return self.name.partition(".")[0]

    def scope(self, constants: Constants) -> str | None:
        """Return the kind of runs that a configuration covers; None: traces are not compared with it.

        By default all runs are of one kind, because an endpoint does not see what the constants bound.
        """
        return "any"

    @abstractmethod
    def windows(self, constants: Constants) -> Iterable[Hashable]:
        """Return the parts of a state that correspond to one window of a trace."""

    @abstractmethod
    def step(self, constants: Constants, edge: "Edge", window: Any) -> ModelStep | None:
        """Return what an edge of the graph is in a window; None: nothing, or it cannot be decided."""

    @abstractmethod
    def watch(self, machine: Endpoint) -> "ViewWatch | Outside":
        """Begin to follow a trace from this state on."""


@attrs.frozen
class Edge:
    """Hold an edge of a graph, with states as plain values."""

    before: State
    action: str
    parameters: tuple[Any, ...]
    after: State


@attrs.define
class Steps:
    all: frozenset[ModelStep]
    by_before: dict[str, list[ModelStep]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, steps: Iterable[ModelStep]) -> "Steps":
        """Index these steps by their states."""
        known = cls(frozenset(steps))
        for step in sorted(known.all):
            known.by_before.setdefault(step.before, []).append(step)
        return known

    def path(self, seen: Seen, most: int) -> list[ModelStep] | None:
        """Return the steps that a record may stand for; None: there are none.

        Without a message there may be up to `most` steps.
        """
        for action in sorted(seen.actions):
            step = ModelStep(seen.before, action, seen.after, seen.says)
            if step in self.all:
                return [step]
        return None if seen.says else self._several(seen, most)

    def _several(self, seen: Seen, most: int) -> list[ModelStep] | None:
        queue: deque[list[ModelStep]] = deque([[]])
        known = {seen.before}
        while queue:
            way = queue.popleft()
            at = way[-1].after if way else seen.before
            for step in self.by_before.get(at, ()) if len(way) < most else ():
                if step.action in seen.actions and not step.says and step.after not in known:
                    if step.after == seen.after:
                        return [*way, step]
                    known.add(step.after)
                    queue.append([*way, step])
        return None


@attrs.define
class RecordedSteps:
    """Hold the recorded steps by view and scope, and the digests of the graphs they come from."""

    graphs: dict[str, str]
    steps: dict[str, dict[str, Steps]]


def cut(view: TraceView, constants: Constants, graph: Graph) -> set[ModelStep]:
    states = [plain(text) for text in graph.states]
    windows = list(view.windows(constants))
    found: set[ModelStep] = set()
    for at, edges in enumerate(graph.edges):
        for label, to in edges:
            edge = Edge(states[at], *_action(label), states[to])
            for window in windows:
                step = view.step(constants, edge, window)
                if step is not None and not step.silent:
                    found.add(step)
    return found


_LABEL = re.compile(r"(\w+)(?:\((.*)\))?$")


def _action(label: str) -> tuple[str, tuple[Any, ...]]:
    found = _LABEL.match(label)
    if found is None:
        raise ModelError(f"not an action of a model: {label!r}")
    return found[1], plain(f'["seq",{found[2]}]') if found[2] else ()


def graph_of(configuration: Configuration) -> Graph:
    """Return the kept graph, or else the core's, which is equal to it."""
    path = equal.kept_path(configuration)
    return Graph.read(path) if path.exists() else equal.core_graph(configuration).graph


def scope_of(view: TraceView, one: Configuration) -> str | None:
    return view.scope(one.constants) if one.has_graph and one.model == view.model else None


def record(views: Iterable[TraceView], models: Path, progress: Callable[[str], None] = lambda _: None) -> RecordedSteps:
    """Extract all steps again, and store them."""
    known = catalog.load(models)
    graphs: dict[str, str] = {}
    found: dict[str, dict[str, set[ModelStep]]] = {view.name: {} for view in views}
    for one in catalog.configurations(models):
        scopes = [(view, scope) for view in views if (scope := scope_of(view, one)) is not None]
        if scopes:
            progress(one.name)
            graph, graphs[one.name] = graph_of(one), known[one.name].digests.actions
            for view, scope in scopes:
                found[view.name].setdefault(scope, set()).update(cut(view, one.constants, graph))
    steps = {view: {scope: Steps.of(some) for scope, some in sorted(scopes.items())} for view, scopes in found.items()}
    kept = RecordedSteps(graphs, steps)
    save(models, kept)
    return kept


def save(models: Path, kept: RecordedSteps) -> None:
    """Write the file, a line for each step."""
    steps = {
        view: {scope: [list(attrs.astuple(step)) for step in sorted(one.all)] for scope, one in scopes.items()}
        for view, scopes in kept.steps.items()
    }
    text = compact({"graphs": dict(sorted(kept.graphs.items())), "steps": steps})
    (models / RECORD).write_text(text, encoding="utf-8")


def load(models: Path) -> RecordedSteps:
    """Return the stored steps.

    Raises:
        ModelError: the file cannot be read, or belongs to other graphs than the recorded ones.
    """
    path = models / RECORD
    try:
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        steps = {
            view: {scope: Steps.of(ModelStep(*one) for one in some) for scope, some in scopes.items()}
            for view, scopes in read["steps"].items()
        }
        kept = RecordedSteps(dict(read["graphs"]), steps)
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a record of views: {error!r}; `stablecast model views --record`") from error
    known = catalog.load(models)
    for name, digest in kept.graphs.items():
        if name not in known or known[name].digests.actions != digest:
            raise ModelError(
                f"{path} is of another graph of {name}; `stablecast model views --record` generates it again"
            )
    return kept
