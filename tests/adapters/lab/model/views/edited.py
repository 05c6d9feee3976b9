"""Traces of a real run, edited: what the tests of views have in common."""

from collections.abc import Callable
from pathlib import Path

from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.file_names import find
from stablecast.lab.model import catalog
from stablecast.lab.model.trace_steps import Following, ViewTally
from stablecast.lab.model.views import VIEWS, edges
from tests.adapters.evidence.trace.traced import put_together, records, take_apart

KEPT = edges.load(catalog.folder())


def followed(*paths: Path) -> dict[str, ViewTally]:
    """What comes of traces, by view."""
    following = Following.of(VIEWS, KEPT)
    following.follow(find(paths))
    return {tally.view.name: tally for tally in following.tallies}


def edited(trace: Path, target: Path, change: Callable[[list[Json]], None]) -> Path:
    """A copy of a trace, with its records changed."""
    frames = take_apart(trace)
    change(list(records(frames)))
    return put_together(target / trace.name, frames)


def having(directory: Path, role: str, kind: str) -> Path:
    """The first trace of a role in which an effect, input, message or event of this kind is."""
    return next(path for path in sorted(directory.glob(f"{role}-*.sct")) if f'"_": "{kind}"' in str(_text(path)))


def _text(path: Path) -> str:
    return "".join(str(record) for record in records(take_apart(path))).replace("'", '"')


def said(record: Json, kind: str) -> list[Json]:
    """The messages and events of this kind in what came of a record."""
    inner = [effect.get("message") or effect.get("event") or {} for effect in record["out"]]
    return [one for one in inner if one.get("_") == kind]
