"""Edited traces of a real run, for the tests of views."""

from collections.abc import Callable
from pathlib import Path

from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.file_names import find
from stablecast.lab.model import catalog
from stablecast.lab.model.trace_checks import Following, ViewTally
from stablecast.lab.model.views import VIEWS, edges
from tests.adapters.evidence.trace.traced import put_together, records, take_apart, traces_by

KEPT = edges.load(catalog.folder())


def followed(*paths: Path) -> dict[str, ViewTally]:
    following = Following.of(VIEWS, KEPT)
    following.follow(find(paths))
    return {tally.view.name: tally for tally in following.tallies}


def edited(trace: Path, target: Path, change: Callable[[list[Json]], None]) -> Path:
    """Write a copy of a trace with changed records; return its path."""
    frames = take_apart(trace)
    change(list(records(frames)))
    return put_together(target / trace.name, frames)


def having(directory: Path, role: str, kind: str) -> Path:
    """Return the first trace of a role that contains an effect, input, message or event of this kind."""
    return next(path for path in traces_by(directory, role) if f'"_": "{kind}"' in _text(path))


def _text(path: Path) -> str:
    return "".join(str(record) for record in records(take_apart(path))).replace("'", '"')


def said(record: Json, kind: str) -> list[Json]:
    """Return the messages and events of this kind in the effects of a record."""
    inner = [effect.get("message") or effect.get("event") or {} for effect in record["out"]]
    return [one for one in inner if one.get("_") == kind]
