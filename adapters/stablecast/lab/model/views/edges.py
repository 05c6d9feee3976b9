"""Steps of a view: what they are made of, how they are cut from a graph, and how they are kept."""

import json
import re
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
from stablecast.lab.model.canonical import Value, parse_text, plain
from stablecast.lab.model.catalog import Configuration
from stablecast.lab.model.errors import ModelError
from stablecast.lab.model.graph import Graph

RECORD = "views.json"

State = Mapping[str, Any]
"""A model's variables as plain values."""
Constants = Mapping[str, Value]


@attrs.frozen(order=True)
class Step:
    """The view before and after an action of the model, and what the endpoint said (`says`, where it matters)."""

    before: str
    action: str
    after: str
    says: str = ""

    @property
    def silent(self) -> bool:
        """Whether nothing is seen of it."""
        return self.before == self.after and not self.says


@attrs.frozen
class Seen:
    """What a record was to a view: whose, and the actions that the record may stand for.

    `first` to below `stop` are the message numbers that were alike, for a view of numbers.
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
        """For people."""
        if self.first < 0:
            return self.whose
        last = self.stop - 1
        return f"{self.whose} number {last}" if last == self.first else f"{self.whose} numbers {self.first} to {last}"


@attrs.frozen
class Outside:
    """A record does what the model does not have."""

    why: str


class Watch(Protocol):
    """The view of one trace, as it goes on. `scope`: which steps it is judged by."""

    @property
    def scope(self) -> str:
        """See `View.scope`."""

    def take(self, event: Input, effects: Iterable[Effect]) -> Iterator[Seen | Outside]:
        """What a record changes."""


class View(Protocol):
    """A view of a model, and of the traces of one role."""

    @property
    def name(self) -> str:
        """The model, and what of it is seen."""

    @property
    def model(self) -> str:
        """The model."""

    @property
    def role(self) -> Role:
        """Whose traces show it."""

    @property
    def most(self) -> int:
        """Steps that one record may be taken for: of a run of messages, which a model takes one by one."""

    def scope(self, constants: Constants) -> str | None:
        """Which kind of runs a configuration is for; None: none that traces are compared with."""

    def windows(self, constants: Constants) -> Iterable[Hashable]:
        """The parts of a state that look like one window of a trace."""

    def step(self, constants: Constants, edge: "Edge", window: Any) -> Step | None:
        """What an edge of the graph is in a window; None: nothing, or it cannot be told."""

    def watch(self, machine: Endpoint) -> "Watch | Outside":
        """Begin with a trace, from this state on."""


@attrs.frozen
class Edge:
    """An edge of a graph, with states as plain values."""

    before: State
    action: str
    parameters: tuple[Any, ...]
    after: State


@attrs.define
class Steps:
    """The steps of a view in one scope."""

    all: frozenset[Step]
    by_before: dict[str, list[Step]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, steps: Iterable[Step]) -> "Steps":
        """These."""
        known = cls(frozenset(steps))
        for step in sorted(known.all):
            known.by_before.setdefault(step.before, []).append(step)
        return known

    def path(self, seen: Seen, most: int) -> list[Step] | None:
        """The steps that a record may be, one or, where nothing is said, up to `most` of them; None: it is none."""
        for action in sorted(seen.actions):
            step = Step(seen.before, action, seen.after, seen.says)
            if step in self.all:
                return [step]
        return None if seen.says else self._several(seen, most)

    def _several(self, seen: Seen, most: int) -> list[Step] | None:
        queue: deque[list[Step]] = deque([[]])
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
class Kept:
    """What is kept: by view and scope the steps, and the digests of the graphs they were cut from."""

    graphs: dict[str, str]
    steps: dict[str, dict[str, Steps]]


def cut(view: View, constants: Constants, graph: Graph) -> set[Step]:
    """The steps that a graph has of a view."""
    states = [plain(text) for text in graph.states]
    windows = list(view.windows(constants))
    found: set[Step] = set()
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
    return found[1], tuple(parse_text(found[2])) if found[2] else ()


def graph_of(configuration: Configuration) -> Graph:
    """The graph that is kept, or else the core's, which is equal to it."""
    path = equal.kept_path(configuration)
    return Graph.read(path) if path.exists() else equal.core_graph(configuration).graph


def record(views: Iterable[View], models: Path, progress: Callable[[str], None] = lambda _: None) -> Kept:
    """Cut all steps anew, and keep them."""
    known = catalog.load(models)
    graphs: dict[str, str] = {}
    found: dict[str, dict[str, set[Step]]] = {view.name: {} for view in views}
    for one in catalog.configurations(models):
        scopes = [(view, scope) for view in views if (scope := scope_of(view, one)) is not None]
        if scopes:
            progress(one.name)
            graph, graphs[one.name] = graph_of(one), known[one.name].digests.actions
            for view, scope in scopes:
                found[view.name].setdefault(scope, set()).update(cut(view, one.constants, graph))
    steps = {view: {scope: Steps.of(some) for scope, some in sorted(scopes.items())} for view, scopes in found.items()}
    kept = Kept(graphs, steps)
    save(models, kept)
    return kept


def scope_of(view: View, one: Configuration) -> str | None:
    """What a configuration tells of a view; None: nothing."""
    return view.scope(one.constants) if one.has_graph and one.model == view.model else None


def save(models: Path, kept: Kept) -> None:
    """Write the file, a line for each step."""
    steps = {
        view: {scope: [list(attrs.astuple(step)) for step in sorted(one.all)] for scope, one in scopes.items()}
        for view, scopes in kept.steps.items()
    }
    text = json.dumps({"graphs": dict(sorted(kept.graphs.items())), "steps": steps}, indent=1)
    lines = re.sub(r"\[\s+(\"[^\[\]]*?\")\s+\]", lambda found: "[" + re.sub(r"\s*\n\s*", " ", found[1]) + "]", text)
    (models / RECORD).write_text(lines + "\n", encoding="utf-8")


def load(models: Path) -> Kept:
    """What is kept.

    Raises:
        ModelError: If it cannot be read, or is of other graphs than those on record.
    """
    path = models / RECORD
    try:
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        steps = {
            view: {scope: Steps.of(Step(*one) for one in some) for scope, some in scopes.items()}
            for view, scopes in read["steps"].items()
        }
        kept = Kept(dict(read["graphs"]), steps)
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a record of views: {error!r}; `stablecast model views --record`") from error
    known = catalog.load(models)
    for name, digest in kept.graphs.items():
        if name not in known or known[name].digests.actions != digest:
            raise ModelError(f"{path} is of another graph of {name}; `stablecast model views --record` makes it anew")
    return kept
