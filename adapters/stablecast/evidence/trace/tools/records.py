"""The records of traces, one by one, as they stand in the files: common code of the tools."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace.converter import TAG, Json
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frames import TraceFrame, frames_from, object_of

SHORTENED: Final = 120
"""Characters of a value in a line for people."""


@attrs.frozen
class TraceRecord:
    """A record with its place.

    Attributes:
        time: The machine's clock, ns.
        offset: Where its frame begins in the file, bytes.
    """

    role: str
    endpoint: str
    number: int
    time: int
    event: Json
    effects: list[Json]
    path: Path
    offset: int

    def as_json(self) -> Json:
        place = {"role": self.role, "endpoint": self.endpoint, "file": str(self.path)}
        return {**place, "n": self.number, "t": self.time, "in": self.event, "out": self.effects}


@attrs.frozen
class TraceWindow:
    """A part of traces; None: all.

    Attributes:
        endpoint: Part of the endpoint's name or of its role.
        since: First time, ns on the machine's clock.
        until: Last time, ns.
    """

    endpoint: str | None = None
    since: int | None = None
    until: int | None = None

    def meets(self, owner: str, begin: int, end: int) -> bool:
        """Return whether records of an owner, role and name, from one time to another may be in the window."""
        if self.endpoint is not None and self.endpoint not in owner:
            return False
        return (self.since is None or end >= self.since) and (self.until is None or begin <= self.until)


@attrs.frozen
class RecordFilter(TraceWindow):
    """A filter of records; None passes all.

    Attributes:
        kind: Part of the class name of the input or of an effect.
        number: A sequence number that must be named, or lie in a range that is.
    """

    kind: str | None = None
    number: int | None = None

    def __contains__(self, record: TraceRecord) -> bool:
        if not self.meets(f"{record.role} {record.endpoint}", record.time, record.time):
            return False
        values = (record.event, *record.effects)
        kind = None if self.kind is None else self.kind.lower()
        if kind is not None and not any(kind in name.lower() for one in values for name in kinds(one)):
            return False
        return self.number is None or any(names(one, self.number) for one in values)


def kinds(value: Any) -> Iterator[str]:
    """Yield the class names in an input or effect: its own, that of its message, that of its event."""
    if isinstance(value, dict):
        if TAG in value:
            yield value[TAG]
        for inner in value.values():
            yield from kinds(inner)


def names(value: Any, number: int) -> bool:
    """Return whether a sequence number is named: alone, as `first` to `last`, or as `count` from `first`."""
    if not isinstance(value, dict):
        return False
    first = value.get("first")
    if isinstance(first, int):
        last = value.get("last", first + value["count"] - 1 if isinstance(value.get("count"), int) else first)
        if isinstance(last, int) and first <= number <= last:
            return True
    return value.get("number") == number or any(names(inner, number) for inner in value.values())


def read_records(paths: Iterable[Path]) -> Iterator[Iterator[TraceRecord]]:
    """Yield the records of each trace, a trace at a time. Raise TraceError."""
    for parts in traces_of(find(paths)):
        yield (
            record for path in parts for frame, offset in frames_from(path) for record in of_frame(frame, path, offset)
        )


def of_frame(frame: TraceFrame, path: Path, offset: int) -> Iterator[TraceRecord]:
    """Yield the records of a frame. Raise TraceError for a malformed one."""
    return (_record(frame, line, path, offset) for line in frame.records)


def of_line(frame: TraceFrame, line: bytes, path: Path, offset: int) -> TraceRecord:
    """Return the record of a frame in this line. Raise TraceError if it is none."""
    return _record(frame, object_of(line), path, offset)


def _record(frame: TraceFrame, line: Json, path: Path, offset: int) -> TraceRecord:
    match line:
        case {"n": int(number), "t": int(time), "in": dict(event), "out": list(effects)}:
            return TraceRecord(*frame.owner, number, time, event, effects, path, offset)
    raise TraceError(f"{path}, byte {offset}: a line is no record of n, t, in and out")


def sentence(record: TraceRecord) -> Iterator[str]:
    """Yield a record for people: a line for the input, one for each effect."""
    seconds = f"{record.time // SECOND}.{record.time % SECOND:09d}"
    yield f"{record.number:>7} {seconds} {record.role} {record.endpoint}  <- {shown(record.event)}"
    for effect in record.effects:
        yield f"{'':>8}{'':>{len(seconds)}} -> {shown(effect)}"


def shown(value: Json) -> str:
    """Return an input, effect, message or event in one short line."""
    fields = {name: content for name, content in value.items() if name != TAG}
    return f"{value.get(TAG, '')}({', '.join(f'{name}={_short(content)}' for name, content in fields.items())})"


def _short(value: Any) -> str:
    text = shown(value) if isinstance(value, dict) and TAG in value else json.dumps(value)
    return text if len(text) <= SHORTENED else f"{text[:SHORTENED]}..."
