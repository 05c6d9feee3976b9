"""Print what `stablecast model trace` and `views` find. Each function returns the exit status."""

from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import VerificationSummary
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.model import catalog
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.trace_steps import Following, ViewTally
from stablecast.lab.model.views import VIEWS, edges
from stablecast.lab.model.views.edges import TraceView
from stablecast.text import plural
from stablecast.text.console import note, say, show, spinning

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
    """Print the views, or generate them again."""
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
