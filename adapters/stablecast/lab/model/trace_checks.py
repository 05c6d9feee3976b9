"""Print what `stablecast model trace` and `views` find. Each function returns the exit status.

Compare traces of real runs with the models: each change must be a step of the model's graph.

Each trace is seen through the views of its role (`stablecast.lab.model.views`), record by record. A record that changes
a view is a *member* if the graphs have such a step. It is *out of bounds* if the models do not cover what it does.
Otherwise it is a **stranger**, and the run is none of the model. Records after a stranger are judged from where it led.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Arrived, Input
from stablecast.evidence.trace.converter import decode_effects, decode_input, restore
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import find, part_of, traces_of
from stablecast.evidence.trace.frames import TraceFrame, frames_from
from stablecast.evidence.trace.reports import VerificationSummary
from stablecast.evidence.trace.tools.records import of_frame
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.model import catalog
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.views import VIEWS, edges
from stablecast.lab.model.views.edges import ModelStep, Outside, RecordedSteps, Seen, Steps, TraceView, ViewWatch
from stablecast.text import plural
from stablecast.text.console import note, say, show, spinning

MOST_STRANGERS = 20
"""Most strangers of one view that are printed; all are counted."""


@attrs.frozen
class Stranger:
    """Describe a record that is no step of the model."""

    view: str
    path: str
    record: int
    window: str
    before: str
    actions: tuple[str, ...]
    after: str
    says: str

    @classmethod
    def of(cls, view: TraceView, path: Path, record: int, seen: Seen) -> "Stranger":
        actions = tuple(sorted(seen.actions))
        return cls(view.name, str(path), record, seen.window, seen.before, actions, seen.after, seen.says)

    def sentence(self) -> str:
        message = f", with message {self.says}" if self.says else ""
        allowed = " or ".join(self.actions) or "nothing that the model has"
        where = f"{self.path}, record {self.record}, {self.window}"
        return f"{where}: from ({self.before}) to ({self.after}){message} is no step of the model by {allowed}"


@attrs.define
class ViewTally:
    """Count the results of one view.

    Attributes:
        view: The view.
        traces: Number of traces.
        members: Changes that are steps of the model; a run of numbers that changed in the same way counts once.
        outside: Changes out of bounds, by reason.
        strangers: Changes that are neither.
        seen: Steps that members were, by scope.
        told: The first strangers.
        records: Kind and action of the records that members were.
    """

    view: TraceView
    traces: int = 0
    members: int = 0
    outside: Counter[str] = attrs.field(factory=Counter)
    strangers: int = 0
    seen: dict[str, set[ModelStep]] = attrs.field(factory=dict)
    told: list[Stranger] = attrs.field(factory=list)
    records: set[tuple[str, str]] = attrs.field(factory=set)

    def as_json(self, kept: RecordedSteps) -> dict[str, Any]:
        seen, there = self.coverage(kept)
        numbers = {"traces": self.traces, "members": self.members, "strangers": self.strangers}
        return {
            "view": self.view.name,
            **numbers,
            "out_of_bounds": dict(sorted(self.outside.items())),
            "records": [list(pair) for pair in sorted(self.records)],
            "steps_seen": seen,
            "steps": there,
            "told": [attrs.asdict(one) for one in self.told],
        }

    def coverage(self, kept: RecordedSteps) -> tuple[int, int]:
        """Return how many different steps were seen, and how many there are in the scopes that were seen."""
        there = kept.steps[self.view.name]
        return sum(map(len, self.seen.values())), sum(len(there[scope].all) for scope in self.seen)


@attrs.define
class Follower:
    tally: ViewTally
    watch: ViewWatch
    steps: Steps

    def take(self, path: Path, record: int, event: Input, effects: list[Effect]) -> None:
        for one in self.watch.take(event, effects):
            if isinstance(one, Outside):
                self.tally.outside[one.why] += 1
            else:
                self._judge(path, record, event, one)

    def _judge(self, path: Path, record: int, event: Input, seen: Seen) -> None:
        way = self.steps.path(seen, self.tally.view.most)
        if way is None:
            self.tally.strangers += 1
            if len(self.tally.told) < MOST_STRANGERS:
                self.tally.told.append(Stranger.of(self.tally.view, path, record, seen))
            return
        self.tally.members += 1
        self.tally.records.update((_kind(event), step.action.partition("(")[0]) for step in way)
        self.tally.seen[self.watch.scope].update(way)


@attrs.define
class Following:
    """Follow all traces in all views, and count what they show."""

    kept: RecordedSteps
    tallies: list[ViewTally]
    records: int = 0

    @classmethod
    def of(cls, views: Iterable[TraceView], kept: RecordedSteps) -> "Following":
        """Return a result without any step."""
        return cls(kept, [ViewTally(view) for view in views])

    def follow(self, paths: Iterable[Path]) -> None:
        """Judge traces. Raises TraceError for one that cannot be read to its end."""
        for parts in traces_of(paths):
            self._follow(parts)

    def _follow(self, parts: list[Path]) -> None:
        followers: list[Follower] = []
        begun = False
        for path, frame, offset in _frames(parts):
            if not begun or frame.head.gap:
                followers = self._open(frame)
                begun = True
            role = frame.head.role
            for record in of_frame(frame, path, offset):
                event, effects = decode_input(role, record.event), decode_effects(role, record.effects)
                self.records += 1
                for follower in followers:
                    follower.take(path, record.number, event, effects)

    def _open(self, frame: TraceFrame) -> list[Follower]:
        machine = restore(frame.head.role, frame.head.snapshot)
        followers: list[Follower] = []
        for tally in self.tallies:
            if tally.view.role is not frame.head.role:
                continue
            tally.traces += 1
            watch = tally.view.watch(machine)
            if isinstance(watch, Outside):
                tally.outside[watch.why] += 1
                continue
            steps = self.kept.steps[tally.view.name].get(watch.scope)
            if steps is None:
                tally.outside[f"no graph is for {watch.scope}"] += 1
                continue
            tally.seen.setdefault(watch.scope, set())
            followers.append(Follower(tally, watch, steps))
        return followers


def _kind(event: Input) -> str:
    """Return the kind of a record: `Tick`, `Arrived(Register)`."""
    name = type(event).__name__
    return f"{name}({type(event.message).__name__})" if isinstance(event, Arrived) else name


def _frames(parts: list[Path]) -> Iterator[tuple[Path, TraceFrame, int]]:
    """Yield the frames of a trace, with their offsets. A missing part is a gap."""
    expected = None
    for path in parts:
        for frame, offset in frames_from(path):
            if expected is not None and frame.head.first != expected and not frame.head.gap:
                raise TraceError(f"{path}: record {expected} is missing, in trace {part_of(path)[0]}")
            expected = frame.head.first + len(frame.records)
            yield path, frame, offset


CLEAN: Final = 0
STRANGE: Final = 1
UNREADABLE: Final = 2

SHOWN = 5
"""Most strangers of a view, or violations, that are printed."""


def trace(paths: list[Path], names: tuple[str, ...], folder: Path | None, as_json: bool) -> int:
    """Judge traces by the models with these names, or by all.

    Returns 0, 1 for a stranger or a violation, 2 if a file cannot be read.
    """
    try:
        models = folder or catalog.folder()
        views = _chosen(names)
        files = find(paths)
        following = Following.of(views, edges.load(models))
        with spinning(as_json) as tell:
            tell("the rules")
            monitors = verify_paths(files)
            tell("the models")
            following.follow(files)
    except StablecastError as error:
        note(f"stablecast: {error}")
        return UNREADABLE
    if as_json:
        say(_as_json(following, monitors))
    else:
        _print(following, monitors)
    strange = any(tally.strangers for tally in following.tallies) or monitors.violations
    return STRANGE if strange else CLEAN


def _chosen(models: tuple[str, ...]) -> list[TraceView]:
    known = {view.model for view in VIEWS}
    for name in models:
        if name not in known:
            raise ModelError(f"traces are not compared with {name}; choose one of {', '.join(sorted(known))}")
    return [view for view in VIEWS if not models or view.model in models]


def _as_json(following: Following, monitors: VerificationSummary) -> dict[str, Any]:
    return {
        "records": following.records,
        "views": [tally.as_json(following.kept) for tally in following.tallies],
        "violations": [one.as_json() for one in monitors.violations],
    }


def _print(following: Following, monitors: VerificationSummary) -> None:
    for tally in following.tallies:
        _print_tally(tally, *tally.coverage(following.kept))
    for violation in monitors.violations[:SHOWN]:
        say(f"{violation.path}: {violation.rule}: {violation.text}")
    say(f"{plural(following.records, 'record')}, {plural(len(monitors.violations), 'violation')} of the rules")


def _print_tally(tally: ViewTally, seen: int, there: int) -> None:
    outside = sum(tally.outside.values())
    members = plural(tally.members, "change", "is a step", "are steps")
    verdict = f"{members} of the model, {outside:,} out of bounds, {tally.strangers:,} neither"
    say(f"{tally.view.name}: {plural(tally.traces, 'trace')}, {verdict}; {seen:,} of {plural(there, 'step')} seen")
    for why, count in sorted(tally.outside.items()):
        say(f"  out of bounds: {why} ({count})")
    for stranger in tally.told[:SHOWN]:
        say(f"  {stranger.sentence()}")


def views(folder: Path | None, record: bool, as_json: bool) -> int:
    models = folder or catalog.folder()
    with spinning(as_json) as tell:
        kept = edges.record(VIEWS, models, tell) if record else edges.load(models)
    told = [
        {"view": view, "scope": scope, "steps": [attrs.asdict(step) for step in sorted(steps.all)]}
        for view, scopes in kept.steps.items()
        for scope, steps in scopes.items()
    ]
    lines = (f"{entry['view']} ({entry['scope']}): {plural(len(entry['steps']), 'step')}" for entry in told)
    show({"views": told}, lines, as_json)
    return CLEAN
