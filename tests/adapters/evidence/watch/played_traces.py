"""Traces of a finished world, written again in the traces' own time, and a watch that follows them meanwhile."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace import container
from stablecast.evidence.trace.trace_recorder import FLUSH_NS
from stablecast.evidence.watch.alarms import WatchAlarm
from stablecast.evidence.watch.command import POLL_NS
from stablecast.evidence.watch.trace_watch import TraceWatch

AFTER_NS: Final = 40 * SECOND
"""Time for which the watch goes on after the end of the world."""

NEAR_NS: Final = 2 * SECOND
"""Endpoints that run record something more often than this."""

LATE_NS: Final = 10 * SECOND
"""A forged clock is believed if it is not later than this after the record before."""


@attrs.frozen
class WrittenPiece:
    """Lines that a recorder writes at a time: to the frame that is open, or to a new one; perhaps the frame ends."""

    at_ns: int
    text: bytes
    opens: bool
    ends: bool


@attrs.define
class PlayedTrace:
    """A trace that is written piece by piece."""

    path: Path
    pieces: list[WrittenPiece]
    descriptor: int = -1
    end: int = 0
    growing: container.Growing | None = None

    def write(self, now_ns: int) -> None:
        """Write everything that its recorder has written by now."""
        while self.pieces and self.pieces[0].at_ns <= now_ns:
            if self.descriptor < 0:
                self.descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            piece = self.pieces.pop(0)
            if piece.opens:
                self.growing = container.Growing(self.descriptor, self.end)
            assert self.growing is not None
            if piece.ends:
                self.end = self.growing.finish(piece.text)
                self.growing = None
            else:
                self.growing.add(piece.text)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


def pieces_of(path: Path, end_ns: int) -> list[WrittenPiece]:
    """Return the pieces in which a recorder writes a trace.

    A trace whose last record is near the end of the world is closed there; an endpoint that ended before was closed
    at once.
    """
    found: list[WrittenPiece] = []
    now = None
    for one in container.TextReader(path).read(ended=True):
        lines = one.lines.splitlines(keepends=True)
        head = json.loads(lines[0])
        now = _believed(head.get("time"), now)
        found += _pieces_of_frame(lines, now, one.finished)
        now = found[-1].at_ns
    if b'"closed":true' in found[-1].text[-200:] and 0 < end_ns - found[-1].at_ns < NEAR_NS:
        found[-1] = attrs.evolve(found[-1], at_ns=end_ns)
    return found


def _pieces_of_frame(lines: list[bytes], now: int, finished: bool) -> Iterator[WrittenPiece]:
    """Yield the pieces of a frame: a piece ends with the first record `FLUSH_NS` after its beginning."""
    opens, text, due = True, lines[0], now + FLUSH_NS
    for line in lines[1:]:
        now = _believed(json.loads(line).get("t"), now)
        text += line
        if now >= due and line is not lines[-1]:
            yield WrittenPiece(now, text, opens, False)
            opens, text, due = False, b"", now + FLUSH_NS
    if text:
        yield WrittenPiece(now, text, opens, finished)


def times_of(path: Path) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield the believed time (ns) of each record of a trace; a record that was removed has that of the next one."""
    now, following = None, 0
    for one in container.TextReader(path).read(ended=True):
        for line in one.lines.splitlines():
            record = json.loads(line)
            now = _believed(record.get("t", record.get("time")), now)
            if isinstance(number := record.get("n", record.get("first")), int):
                for passed in range(min(following, number), number + 1):
                    yield (path.name, passed), now
                following = number + 1
    yield (path.name, following), now or 0


def _believed(time: Any, before: int | None) -> int:
    if not isinstance(time, int):
        return before or 0
    return time if before is None or before <= time <= before + LATE_NS else before


@attrs.define
class PlayedWatch:
    """The outcome: each sentence with the time of the watch's report, and the times (ns) at which records were made."""

    named: list[tuple[int, WatchAlarm]] = attrs.field(factory=list)
    times: dict[tuple[str, int], int] = attrs.field(factory=dict)

    def delay(self, path: str, record: int, rule: str) -> int | None:
        """Return how long after a record (ns) its violation was reported; None if it was not."""
        for at, alarm in self.named:
            if (alarm.file.name, alarm.place, alarm.rule) == (path, record, rule):
                return at - self.times[path, record]
        return None


def played(traces: Path, into: Path, after_ns: int = AFTER_NS) -> PlayedWatch:
    """Write the traces of a directory into another one in their own time, and let a watch follow them."""
    into.mkdir(exist_ok=True)
    paths = sorted(traces.glob("*.sct"), key=lambda path: path.name)
    end_ns = max((pieces_of(path, 0)[-1].at_ns for path in paths), default=0)
    writers = [PlayedTrace(into / path.name, pieces_of(path, end_ns)) for path in paths]
    now = min(one.pieces[0].at_ns for one in writers)
    watch, outcome = TraceWatch([into]), PlayedWatch(times=dict(one for path in paths for one in times_of(path)))
    outcome.named += [(now, one) for one in watch.poll(now)]
    while now < end_ns + after_ns and (now <= end_ns or watch.joint.ledger.rounds):
        now += POLL_NS
        for one in writers:
            one.write(now)
        outcome.named += [(now, alarm) for alarm in watch.poll(now)]
    for one in writers:
        one.close()
    return outcome
