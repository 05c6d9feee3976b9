"""`stablecast trace diff`: the first difference of two runs, endpoint by endpoint.

Traces are paired by role and, among those of a role, in the order of their names, numbers in them by value. So a run
and its repetition are compared, whatever ports and process numbers they had. Times differ from run to run and are
compared only on request.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import attrs

from stablecast.evidence.trace.tools.records import TraceRecord, read_records


@attrs.frozen
class TraceDifference:
    """The first records of two traces that differ; None if that trace ends before."""

    role: str
    left: TraceRecord | None
    right: TraceRecord | None
    number: int

    def as_json(self) -> dict[str, object]:
        """Return the difference for machines."""
        sides = {"left": self.left, "right": self.right}
        return {"role": self.role, "record": self.number} | {
            side: None if record is None else record.as_json() for side, record in sides.items()
        }


def diff(left: Path, right: Path, *, times: bool = False) -> list[TraceDifference]:
    """Return the first difference of each pair of traces. Raise TraceError."""
    found = []
    ours, theirs = _by_role(left), _by_role(right)
    for role in sorted({*ours, *theirs}):
        for one, other in zip_longest(ours.get(role, []), theirs.get(role, [])):
            difference = _first(role, iter(one or ()), iter(other or ()), times)
            if difference is not None:
                found.append(difference)
    return found


def _by_role(path: Path) -> dict[str, list[list[TraceRecord]]]:
    """Return the traces below a path by role, in the order of their names."""
    traces: dict[str, list[list[TraceRecord]]] = defaultdict(list)
    for records in read_records([path]):
        trace = list(records)
        if trace:
            traces[trace[0].role].append(trace)
    for of_role in traces.values():
        of_role.sort(key=lambda trace: _natural(trace[0].path.name))
    return traces


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts the tenth trace of a process after its ninth."""
    parts: list[str] = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _first(
    role: str, ours: Iterator[TraceRecord], theirs: Iterator[TraceRecord], times: bool
) -> TraceDifference | None:
    pairs: Iterable[tuple[TraceRecord | None, TraceRecord | None]] = zip_longest(ours, theirs)
    for number, (one, other) in enumerate(pairs):
        if one is None or other is None or _content(one, times) != _content(other, times):
            return TraceDifference(role, one, other, number)
    return None


def _content(record: TraceRecord, times: bool) -> tuple[object, ...]:
    return (record.event, record.effects, record.time if times else None)
