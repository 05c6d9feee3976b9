"""The thread that turns frames into bytes while the event loop goes on; long traces go on in further files."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Full, Queue
from typing import Final

import attrs

from stablecast.core.effects import Effect
from stablecast.core.inputs import Input
from stablecast.core.messages import Role
from stablecast.core.units import SECOND
from stablecast.sentences import refusal
from stablecast.trace import container
from stablecast.trace.converter import Json
from stablecast.trace.frames import Foot, Head, digest, write_frame
from stablecast.trace.lines import effects_text, input_text
from stablecast.trace.names import part_path

MAX_PENDING_FRAMES: Final = 8
"""Frames that wait for the disk."""

Record = tuple[int, Input, Sequence[Effect]]
"""The clock in ns, what was fed and what came of it."""


@attrs.frozen
class Pending:
    """A frame that is not encoded yet."""

    frame: int
    role: Role
    endpoint: str
    first: int
    gap: int
    time: int
    started: Json
    records: list[Record]
    ended: Json
    closed: bool


def encode(frame: Pending) -> bytes:
    """Returns the lines of a frame."""
    head = Head(frame.frame, frame.role, frame.endpoint, frame.first, frame.gap, frame.time, frame.started)
    return write_frame(
        head, "".join(_lines(frame)).encode(), Foot(len(frame.records), digest(frame.ended), frame.closed)
    )


def _lines(frame: Pending) -> Iterator[str]:
    for number, (now, event, effects) in enumerate(frame.records, frame.first):
        yield f'{{"n":{number},"t":{now},"in":{input_text(event)},"out":{effects_text(effects)}}}\n'


@attrs.frozen
class Rolling:
    """When a trace goes on in another file, and how many of its files stay.

    Attributes:
        size_bytes: Size of a file after which the next frame goes into another one.
        span_ns: Time of a file, on the machine's clock, after which the next frame does.
        keep: Newest files that stay, 0: all.
    """

    size_bytes: int = 256 << 20
    span_ns: int = 3600 * SECOND
    keep: int = 0


ROLLING: Final = Rolling()
"""Large files, all of which stay."""


class Writer:
    """The files of one trace and their thread. After the first error all that comes is thrown away."""

    def __init__(
        self, descriptor: int, end: int, path: Path, report: Callable[[str], None], rolling: Rolling = ROLLING
    ) -> None:
        """Starts the thread at the `end` of the file; the descriptor becomes its own, `report` is called in it."""
        self._descriptor = descriptor
        self._first = self._path = path
        self._report = report
        self._end = end
        self._rolling = rolling
        self._part = 0
        self._began: int | None = None
        self._queue: Queue[Pending | None] = Queue(MAX_PENDING_FRAMES)
        # A daemon thread: a disk that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    @property
    def full(self) -> bool:
        """Whether there is no room for a frame."""
        return self._queue.full()

    def offer(self, frame: Pending, wait: bool) -> bool:
        """Queues a frame, when there is room if it is to `wait`; returns whether it was queued."""
        try:
            self._queue.put(frame, block=wait)
        except Full:
            return False
        return True

    def close(self, last: Pending) -> None:
        """Queues the last frame, waits until everything is written, and closes the file."""
        self._queue.put(last)
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        working = True
        while (frame := self._queue.get()) is not None:
            if working:
                working = self._write(frame)
            self._queue.task_done()
        os.close(self._descriptor)

    def _write(self, frame: Pending) -> bool:
        try:
            self._roll(frame.time)
            self._end = container.append(self._descriptor, self._end, encode(frame))
        except Exception as error:  # noqa: BLE001 - whatever it is, the endpoint goes on, and whoever asked is told
            remedy = "; make room or choose another place, then restart" if isinstance(error, OSError) else ""
            self._report(f"the trace {self._path} ends here: {refusal(error)}{remedy}")
            return False
        return True

    def _roll(self, now: int) -> None:
        """Goes on in another file if it is time for one; what it begins with can be replayed without those before."""
        began = self._began = now if self._began is None else self._began
        rolling = self._rolling
        if self._end < rolling.size_bytes and now - began < rolling.span_ns:
            return
        path = part_path(self._first, self._part + 1)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        os.close(self._descriptor)
        self._descriptor, self._end, self._path, self._began = descriptor, 0, path, now
        self._part += 1
        if rolling.keep and self._part >= rolling.keep:
            part_path(self._first, self._part - rolling.keep).unlink(missing_ok=True)
