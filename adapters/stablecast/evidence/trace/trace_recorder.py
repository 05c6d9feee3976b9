"""Record the inputs and effects of a machine, frame by frame, while it runs.

`record` keeps references only, because inputs and effects never change. They go to a thread in *pieces*: after
`PIECE_RECORDS` records or `PIECE_EFFECTS` effects, and with the first record `FLUSH_NS` after the piece before. The
thread encodes, compresses and writes; its queue is bounded.

**Snapshots are rare.** A frame begins with a snapshot of the whole machine, which may hold a hundred thousand messages.
So a frame ends only when its records are `SPACING` times as long as that snapshot, and long or old enough. Then
snapshots cost a small part of the records, however much the machine holds and however idle it is. The recorder makes a
snapshot at once, because the machine changes with the next input.

While the queue is full, pieces grow. A piece of full size is dropped; its frame ends there, and the next frame states
the number of missing records. A slow disk never slows an endpoint down, unless its recorder is *patient*. Simulated
time has no reason to hurry.
"""

import itertools
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import container
from stablecast.evidence.trace.converter import Endpoint, Json, snapshot
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.writer import (
    ROLLING,
    Encoder,
    FrameEnding,
    FrameOpening,
    Record,
    RecordPiece,
    TraceRolling,
    TraceWriter,
)
from stablecast.runtime import machine
from stablecast.text import refusal
from stablecast.text.scarcity import REMEDY, is_scarce

PIECE_RECORDS: Final = 4096
"""Records after which a piece ends."""

PIECE_EFFECTS: Final = 16_384
"""Effects in one piece after which it ends."""

FLUSH_NS: Final = 200 * MILLISECOND
"""Age of a piece, on the machine's clock, at which the next record ends it: the most that a kill loses."""

TEXT_BYTES: Final = 128
"""Estimated length of a record, and of each effect, in bytes of text."""

SPACING: Final = 4
"""Bytes of records in a frame for each byte of its snapshot, at least."""

FRAME_BYTES: Final = 1 << 20
"""Bytes of records after which a frame ends as soon as its snapshot allows."""

FRAME_NS: Final = 10 * SECOND
"""Age at which a frame ends as soon as its snapshot allows, because readers of live traces wait for it."""

MAX_FRAME_BYTES: Final = 64 << 20
"""Bytes of records after which a frame ends in any case."""

MAX_NAME: Final = 100
"""Characters of an endpoint's name that go into the name of its file."""

KEEP: Final = "STABLECAST_TRACE_KEEP"
"""The environment variable with the number of files of each trace that stay; without it their bytes decide."""

LIMIT: Final = "STABLECAST_TRACE_LIMIT"
"""The environment variable with the bytes of each trace that stay, 0 for all; the default is in `TraceRolling`."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_NUMBERS = itertools.count()


def complain(text: str) -> None:
    """Report a failure of a trace on standard error; the endpoint continues without it."""
    machine.process.errors().write(f"stablecast: {text}\n")


class Recorder:
    """The trace of one endpoint, of this `role`. Call it from one thread, and `close` it with the endpoint.

    It closes itself at the exit of the process.
    """

    def __init__(
        self,
        directory: Path,
        role: Role,
        name: str,
        endpoint: Endpoint,
        *,
        patient: bool = False,
        rolling: TraceRolling = ROLLING,
        report: Callable[[str], None] = complain,
    ) -> None:
        """Create the file, with a first frame that has the machine's first state and configuration.

        The machine must be in the state in which it will get its first recorded input.

        Args:
            directory: The directory of traces; made if it is missing.
            role: The role of the machine.
            name: The name of the endpoint for people.
            endpoint: A machine with an empty outbox.
            patient: Whether to wait for a slow disk rather than drop frames.
            rolling: When to continue in another file.
            report: Called once, from another thread, when the trace cannot be written any more.

        Raises:
            TraceError: If the file cannot be made.
        """
        self.role = role
        self._machine = endpoint
        self._first = 0
        self._time = 0
        self._due = -1
        self._effects = 0
        self._records: list[Record] = []
        self._weight = 0
        self._frame_due = 0
        self._frame = 1
        self._gap = 0
        started = snapshot(endpoint)
        encoder = Encoder(role, name)
        self.path, descriptor, end = _create(directory, role, name, _first_frame(encoder, started))
        self._opening: FrameOpening | None = FrameOpening(1, 0, started)
        self._lost = False
        self._writer = TraceWriter(descriptor, end, self.path, encoder, report, rolling)
        self._patient = patient
        self._closed = False
        machine.process.at_exit(self.close)

    def record(self, event: Input, now: int, effects: Sequence[Effect]) -> None:
        """Keep one step; call it right after `take_effects`, before the next input. Do not change the list."""
        self._records.append((now, event, effects))
        self._effects += len(effects)
        if len(self._records) >= PIECE_RECORDS or self._effects >= PIECE_EFFECTS:
            self._end_piece(now)
        elif now >= self._due:
            if self._patient or not self._writer.full:
                self._end_piece(now)
            else:
                self._due = now + FLUSH_NS

    def flush(self) -> None:
        """End the frame now, if it has records; the thread writes it soon."""
        if self._records or self._weight:
            self._weight = MAX_FRAME_BYTES
            self._end_piece(self._records[-1][0] if self._records else self._time)

    def close(self) -> None:
        """Write the rest, wait until it is written, and close the file; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        machine.process.not_at_exit(self.close)
        ended = snapshot(self._machine)
        if self._lost:
            self._skip()
            self._open(ended)
        self._writer.close(self._take_piece(FrameEnding(ended, closed=True)))

    def _end_piece(self, now: int) -> None:
        if self._closed:  # A late callback of a driver that has ended already.
            self._records.clear()
            return
        self._due = now + FLUSH_NS
        if self._lost:
            self._pick_up()
            return
        ending = FrameEnding(snapshot(self._machine), closed=False) if self._is_over(now) else None
        piece = self._take_piece(ending)
        if not self._writer.offer(piece, self._patient):
            self._drop(piece)
        elif ending is not None:
            self._open(ending.ended)

    def _drop(self, piece: RecordPiece) -> None:
        """Drop a piece for lack of room: its frame ends before it, or does not exist if it was to begin here."""
        self._lost = True
        self._gap = len(piece.records)
        self._weight = 0
        if piece.opening is not None:
            self._gap += piece.opening.gap
            self._frame -= 1

    def _is_over(self, now: int) -> bool:
        if self._opening is not None:
            self._frame_due = now + FRAME_NS
        self._weight += TEXT_BYTES * (len(self._records) + self._effects)
        if self._weight >= MAX_FRAME_BYTES:
            return True
        grown = self._weight >= FRAME_BYTES or now >= self._frame_due
        return grown and self._weight >= SPACING * self._writer.snapshot_bytes

    def _pick_up(self) -> None:
        """Continue after dropped records once there is room: the next frame begins here."""
        self._skip()
        if not self._writer.full:
            self._open(snapshot(self._machine))

    def _skip(self) -> None:
        self._gap += len(self._records)
        self._first += len(self._records)
        self._records = []
        self._effects = 0

    def _open(self, started: Json) -> None:
        self._frame += 1
        self._opening = FrameOpening(self._frame, self._gap, started)
        self._gap = self._weight = 0
        self._lost = False

    def _take_piece(self, ending: FrameEnding | None) -> RecordPiece:
        records, self._records = self._records, []
        time = records[0][0] if records else self._time
        # Simulated time, which a patient recorder gets, is on no wall.
        known = self._opening is not None and records and not self._patient
        wall = self._wall_at(time) if known else 0
        piece = RecordPiece(self._first, time, records, self._opening, ending, wall)
        self._opening = None
        self._first += len(records)
        self._effects = 0
        self._time = records[-1][0] if records else self._time
        return piece

    def _wall_at(self, time: int) -> int:
        """Return the wall clock at a time of the machine's clock that was a moment ago."""
        return machine.clock.wall_ns() - (machine.clock.monotonic_ns() - time)


def _first_frame(encoder: Encoder, started: Json) -> bytes:
    """Return the lines of a frame without records: readers see at once the owner and the version."""
    piece = RecordPiece(0, 0, [], FrameOpening(0, 0, started), FrameEnding(started, closed=False))
    assert piece.opening is not None
    return encoder.begin(piece, piece.opening) + encoder.end(piece.ending)


def rolling() -> TraceRolling:
    """Return the bounds of a trace that the environment sets. Raise TraceError."""
    keep, limit = _number_in(KEEP, "files", 0), _number_in(LIMIT, "bytes", ROLLING.limit_bytes)
    return TraceRolling(keep=keep, limit_bytes=limit)


def _number_in(variable: str, unit: str, default: int) -> int:
    text = machine.process.environment.get(variable, str(default))
    if not text.isascii() or not text.isdigit():
        raise TraceError(f"{variable} should be a number of {unit}, it is {text!r}")
    return int(text)


def _create(directory: Path, role: Role, name: str, first: bytes) -> tuple[Path, int, int]:
    """Create `<role>-<name>-<pid>-<n>.sct` with its first frame; return path, descriptor and end.

    A file of an earlier process with this number is left alone.
    """
    stem = f"{role.name.lower()}-{_UNSAFE.sub('_', name)[:MAX_NAME]}-{machine.process.pid()}"
    try:
        machine.files.make_directories(directory)
        path, descriptor = _open_new(directory, stem)
        try:
            return path, descriptor, container.append(descriptor, 0, first)
        except OSError:
            machine.files.close(descriptor)
            machine.files.remove(path)
            raise
    except OSError as error:
        remedy = REMEDY if is_scarce(error) else "name another directory"
        raise TraceError(f"no trace can be written in {directory}: {refusal(error)}; {remedy}") from error


def _open_new(directory: Path, stem: str) -> tuple[Path, int]:
    while True:
        path = directory / f"{stem}-{next(_NUMBERS)}.sct"
        try:
            return path, machine.files.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
