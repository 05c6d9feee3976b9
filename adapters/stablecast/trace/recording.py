"""Recording: what a machine was told and what it answered, frame by frame, while it runs.

`record` keeps references only: inputs and effects are records that nobody changes. A frame ends after `FRAME_RECORDS`
records or `FRAME_EFFECTS` effects, or with the first record `FLUSH_NS` after it began; then one snapshot is taken,
here, for the machine changes with the next input. Encoding, compressing and writing happen in a thread with a bounded
queue. While that is full, frames grow; those that have their full size are dropped, and the next one says how many
records are missing: a slow disk never slows an endpoint down, unless its recorder is *patient*. Simulated time has no
reason to hurry.
"""

import atexit
import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from stablecast.core.effects import Effect
from stablecast.core.inputs import Input
from stablecast.core.messages import Role
from stablecast.core.units import MILLISECOND
from stablecast.sentences import refusal
from stablecast.trace import container
from stablecast.trace.converter import Endpoint, snapshot
from stablecast.trace.errors import TraceError
from stablecast.trace.writer import ROLLING, Pending, Record, Rolling, Writer, encode

FRAME_RECORDS: Final = 4096
"""Records of one frame."""

FRAME_EFFECTS: Final = 16_384
"""Effects in one frame after which it ends."""

FLUSH_NS: Final = 200 * MILLISECOND
"""Age of a frame, on the machine's clock, at which the next record ends it: what a kill may cost."""

SNAPSHOT_SPACING: Final = 50
"""A frame may grow older, up to this many times the processor time of its snapshot: a large store is not held up."""

MAX_NAME: Final = 100
"""Characters of an endpoint's name that go into the name of its file."""

KEEP: Final = "STABLECAST_TRACE_KEEP"
"""The environment variable that says how many files of each trace stay; without it all do."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_NUMBERS = itertools.count()


def complain(text: str) -> None:
    """Tells a person what went wrong with a trace; the endpoint goes on without it."""
    sys.stderr.write(f"stablecast: {text}\n")


class Recorder:
    """The trace of one endpoint. Call it from one thread, `close` it with the endpoint; at exit it closes itself."""

    def __init__(
        self,
        directory: Path,
        role: Role,
        name: str,
        machine: Endpoint,
        *,
        patient: bool = False,
        rolling: Rolling = ROLLING,
        report: Callable[[str], None] = complain,
    ) -> None:
        """Creates the file, with a first frame that says from which state and configuration the machine starts.

        The machine must be as it will be when it takes its first recorded input.

        Args:
            directory: Where traces go; made if it is missing.
            role: What the machine is.
            name: What people call the endpoint.
            machine: A machine with nothing in its outbox.
            patient: Whether to wait for a slow disk rather than drop frames.
            rolling: When to go on in another file.
            report: Told once, from another thread, when the trace cannot be written any more.

        Raises:
            TraceError: If the file cannot be made.
        """
        self._machine = machine
        self._role = role
        self._name = name
        self._frame = 0
        self._first = 0
        self._gap = 0
        self._time = 0
        self._due = -1
        self._effects = 0
        self._records: list[Record] = []
        self._snapshot = snapshot(machine)
        self.path, descriptor, end = _create(directory, role, name, encode(self._take_frame(closed=False)))
        self._frame = 1
        self._writer = Writer(descriptor, end, self.path, report, rolling)
        self._patient = patient
        self._closed = False
        atexit.register(self.close)

    def record(self, event: Input, now: int, effects: Sequence[Effect]) -> None:
        """Keeps one step; call it right after `take_effects`, before anything else is fed. The list must not change."""
        self._records.append((now, event, effects))
        self._effects += len(effects)
        if len(self._records) >= FRAME_RECORDS or self._effects >= FRAME_EFFECTS:
            self._end_frame(now)
        elif now >= self._due:
            if self._patient or not self._writer.full:
                self._end_frame(now)
            else:
                self._due = now + FLUSH_NS

    def flush(self) -> None:
        """Ends the frame now, if there is anything in it; it is written soon."""
        if self._records:
            self._end_frame(self._records[-1][0])

    def close(self) -> None:
        """Writes what is left, waits until it is written, and closes the file; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        frame = self._take_frame(closed=True)
        self._writer.close(frame)

    def _end_frame(self, now: int) -> None:
        if self._closed:  # A late callback of a driver that has ended already.
            self._records.clear()
            return
        began = time.thread_time_ns()
        frame = self._take_frame(closed=False)
        self._due = now + max(FLUSH_NS, SNAPSHOT_SPACING * (time.thread_time_ns() - began))
        if self._writer.offer(frame, self._patient):
            self._frame += 1
            self._gap = 0
        else:
            self._gap += len(frame.records)

    def _take_frame(self, closed: bool) -> Pending:
        records, self._records = self._records, []
        started, self._snapshot = self._snapshot, snapshot(self._machine)
        frame = Pending(
            self._frame,
            self._role,
            self._name,
            self._first,
            self._gap,
            records[0][0] if records else self._time,
            started,
            records,
            self._snapshot,
            closed,
        )
        self._first += len(records)
        self._effects = 0
        self._time = records[-1][0] if records else self._time
        return frame


def rolling() -> Rolling:
    """How many files are kept, as the environment says. Raises TraceError."""
    text = os.environ.get(KEEP, "0")
    if not text.isascii() or not text.isdigit():
        raise TraceError(f"{KEEP} should be a number of files, it is {text!r}")
    return Rolling(keep=int(text))


def _create(directory: Path, role: Role, name: str, first: bytes) -> tuple[Path, int, int]:
    """A new file `<role>-<name>-<pid>-<n>.sct` with its first frame; returns its descriptor and end, too.

    A file that an earlier process of this number left is not touched.
    """
    stem = f"{role.name.lower()}-{_UNSAFE.sub('_', name)[:MAX_NAME]}-{os.getpid()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path, descriptor = _open_new(directory, stem)
        try:
            return path, descriptor, container.append(descriptor, 0, first)
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
    except OSError as error:
        raise TraceError(f"no trace can be written in {directory}: {refusal(error)}; name another directory") from error


def _open_new(directory: Path, stem: str) -> tuple[Path, int]:
    while True:
        path = directory / f"{stem}-{next(_NUMBERS)}.sct"
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
