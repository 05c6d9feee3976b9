"""The thread that turns frames into bytes while the event loop goes on."""

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
from stablecast.trace import container
from stablecast.trace.converter import Json, encode_effect, encode_input
from stablecast.trace.frames import Foot, Head, digest, write_frame

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
    return write_frame(head, _lines(frame), Foot(len(frame.records), digest(frame.ended), frame.closed))


def _lines(frame: Pending) -> Iterator[Json]:
    for number, (now, event, effects) in enumerate(frame.records, frame.first):
        yield {"n": number, "t": now, "in": encode_input(event), "out": [encode_effect(effect) for effect in effects]}


class Writer:
    """One file and its thread. After the first error nothing more is written, and everything is thrown away."""

    def __init__(self, descriptor: int, end: int, path: Path, report: Callable[[str], None]) -> None:
        """Starts the thread at the `end` of the file; the descriptor becomes its own, `report` is called in it."""
        self._descriptor = descriptor
        self._path = path
        self._report = report
        self._end = end
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
            self._end = container.append(self._descriptor, self._end, encode(frame))
        except Exception as error:  # noqa: BLE001 - whatever it is, the endpoint goes on, and whoever asked is told
            self._report(f"the trace {self._path} ends here: {error}")
            return False
        return True
