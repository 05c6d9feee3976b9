"""The thread that encodes and writes frames while the event loop runs; long traces have several files.

Inputs and effects as the text of a trace, written by templates: the schema of `converter`, fast.

A record costs the core about ten microseconds, and JSON objects cost as much again. So each class gets a template of
its text, made once from its annotations. `record_reader` is the way back.
"""

import errno
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from queue import Full
from typing import Any, Final, get_args, get_origin

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import container
from stablecast.evidence.trace.converter import TAG, Json, fields_of, is_union, members_of
from stablecast.evidence.trace.file_names import part_path
from stablecast.evidence.trace.frames import Foot, Head, digest, first_line, last_line, text_of
from stablecast.runtime import machine
from stablecast.text import refusal
from stablecast.text.scarcity import REMEDY, is_scarce

Write = Callable[[Any], str]

_TRUTH: Final = {True: "true", False: "false"}
_text = lru_cache(maxsize=4096)(json.dumps)
"""Cached, because addresses, topics and sentences repeat."""


class _Writers(dict[Any, Write]):
    """Writers of records with their class name, made on first use."""

    def __missing__(self, kind: type) -> Write:
        write = self[kind] = _record_writer(kind, f'"{TAG}":"{kind.__name__}"')
        return write


_WRITERS: Final = _Writers()


def input_text(event: Input) -> str:
    return _WRITERS[type(event)](event)


def effects_text(effects: Sequence[Effect]) -> str:
    if len(effects) > 1:
        return f"[{','.join([_WRITERS[type(effect)](effect) for effect in effects])}]"
    return f"[{_WRITERS[type(effects[0])](effects[0])}]" if effects else "[]"


def _record_writer(kind: type, tag: str = "") -> Write:
    """Return the writer of a record: one f-string of its fields, compiled once."""
    tools: dict[str, Any] = {"truth": _TRUTH, "text": _text}
    places = [f'"{name}":{{{_expression(schema, f"record.{name}", tools)}}}' for name, schema in fields_of(kind)]
    text = ",".join([tag, *places] if tag else places)
    write: Write = eval(f"lambda record: f'{{{{{text}}}}}'", tools)  # noqa: S307 - of the core's own annotations
    return write


def _expression(schema: Any, value: str, tools: dict[str, Any]) -> str:
    """Return the f-string expression of a value; add the functions that it needs to `tools`."""
    if schema is bool:
        return f"truth[{value}]"
    if schema is str:
        return f"text({value})"
    if schema is int:
        return value
    if get_origin(schema) is None and issubclass(schema, int):
        return f"int({value})"
    tool = f"write{len(tools)}"
    if is_union(schema) and len(members := members_of(schema)) > 1:
        tools[tool] = {member: _record_writer(member, f'"{TAG}":"{member.__name__}"') for member in members}
        return f"{tool}[{value}.__class__]({value})"
    tools[tool] = _writer(schema)
    return f"{tool}({value})"


def _writer(schema: Any) -> Write:
    """Return the writer of a value inside a list, tuple or union."""
    if is_union(schema):
        write = _writer(members_of(schema)[0])
        return lambda value: "null" if value is None else write(value)
    if get_origin(schema) is tuple:
        return _tuple_writer(schema)
    if schema is bool:
        return _TRUTH.__getitem__
    if schema is str:
        return _text
    return _digits if issubclass(schema, int) else _record_writer(schema)


def _digits(value: int) -> str:
    return str(int(value))


def _tuple_writer(schema: Any) -> Write:
    inner = get_args(schema)
    if inner[-1] is Ellipsis:
        write = _writer(inner[0])
        return lambda values: f"[{','.join([write(value) for value in values])}]"
    writers = [_writer(one) for one in inner]
    return lambda values: f"[{','.join([write(value) for write, value in zip(writers, values, strict=True)])}]"


MAX_PENDING: Final = 8
"""Pieces of frames that wait for the disk, at most."""

Record = tuple[int, Input, Sequence[Effect]]
"""The clock in ns, the input and its effects."""


@attrs.frozen
class FrameOpening:
    """The beginning of a frame: its number, the records dropped before it, and its first state."""

    frame: int
    gap: int
    started: Json


@attrs.frozen
class FrameEnding:
    """The end of a frame: the state after its last record, and whether the trace ends with it."""

    ended: Json
    closed: bool


@attrs.frozen
class RecordPiece:
    """A run of records of a frame, not encoded yet.

    Attributes:
        first: Number of the first record.
        time: The machine's clock at the first record, ns.
        records: In order; none in a frame that has none.
        opening: Of the frame that begins here; None if the frame before goes on.
        ending: Of the frame if it ends here.
        wall: The wall clock at the first record, in ns of the epoch, if a frame begins here.
    """

    first: int
    time: int
    records: list[Record]
    opening: FrameOpening | None = None
    ending: FrameEnding | None = None
    wall: int = 0


def lines_of(piece: RecordPiece) -> bytes:
    return "".join(_lines(piece)).encode()


def _lines(piece: RecordPiece) -> Iterator[str]:
    for number, (now, event, effects) in enumerate(piece.records, piece.first):
        yield f'{{"n":{number},"t":{now},"in":{input_text(event)},"out":{effects_text(effects)}}}\n'


class Encoder:
    """Encoder of pieces as text. A snapshot that ends a frame and starts the next one is encoded once.

    Attributes:
        snapshot_bytes: Length of the newest snapshot's text.
    """

    def __init__(self, role: Role, endpoint: str) -> None:
        self._role = role
        self._endpoint = endpoint
        self._frame = 0
        self._count = 0
        self._state: Json | None = None
        self._text = b""
        self.snapshot_bytes = 0

    def begin(self, piece: RecordPiece, opening: FrameOpening) -> bytes:
        """Return the first line of the frame that begins with this piece."""
        self._frame, self._count = opening.frame, 0
        text = self._encoded(opening.started)
        head = Head(opening.frame, self._role, self._endpoint, piece.first, opening.gap, piece.time, text, piece.wall)
        return first_line(head)

    def records(self, piece: RecordPiece) -> bytes:
        self._count += len(piece.records)
        self._state, self._text = None, b""  # It may be large: it is kept from one frame to the next only.
        return lines_of(piece)

    def end(self, ending: FrameEnding | None) -> bytes:
        """Return the last line of the frame; without an ending the state after it is unknown."""
        found = digest(self._encoded(ending.ended)) if ending else ""
        return last_line(self._frame, Foot(self._count, found, bool(ending and ending.closed)))

    def _encoded(self, state: Json) -> bytes:
        if state is not self._state:
            self._state, self._text = state, text_of(state)
            self.snapshot_bytes = len(self._text)
        return self._text


@attrs.frozen
class TraceRolling:
    """Bounds of a file and of a whole trace. The newest file always stays.

    Attributes:
        size_bytes: Size of a file after which the next frame goes into another one.
        span_ns: Time of a file, on the machine's clock, after which the next frame does.
        keep: Newest files that stay, 0: all.
        limit_bytes: Bytes of all files of the trace beyond which the oldest are deleted, 0: none are.
    """

    size_bytes: int = 256 << 20
    span_ns: int = 3600 * SECOND
    keep: int = 0
    limit_bytes: int = 1 << 30


ROLLING: Final = TraceRolling()
"""The default: large files, a GiB of them."""

PARTS: Final = 4
"""Files that share a limit of bytes, at least, so that a deletion never takes most of a trace."""


class TraceWriter:
    """The files of one trace and their thread. After the first error it drops everything."""

    def __init__(
        self,
        descriptor: int,
        end: int,
        path: Path,
        encoder: Encoder,
        report: Callable[[str], None],
        rolling: TraceRolling = ROLLING,
    ) -> None:
        """Start the thread at the `end` of the file. It owns the descriptor and calls `report`."""
        self._descriptor = descriptor
        self._first = self._path = path
        self._encoder = encoder
        self._report = report
        self._end = end
        self._rolling = rolling
        limit = rolling.limit_bytes
        self._part_bytes = min(rolling.size_bytes, max(1, limit // PARTS)) if limit else rolling.size_bytes
        self._part = 0
        self._began: int | None = None
        self._frame: container.Growing | None = None
        self._older: deque[tuple[Path, int]] = deque()
        self._told_of_deleting = False
        self._queue = machine.threads.queue(MAX_PENDING)
        self._thread = machine.threads.start("trace", self._run)

    @property
    def full(self) -> bool:
        """Return whether there is no room for a piece."""
        return self._queue.full()

    @property
    def snapshot_bytes(self) -> int:
        """Return the length of the text of the newest written snapshot."""
        return self._encoder.snapshot_bytes

    def offer(self, piece: RecordPiece, wait: bool) -> bool:
        """Queue a piece, if it is to `wait` as soon as there is room; return whether it was queued."""
        try:
            self._queue.put(piece, block=wait)
        except Full:
            return False
        return True

    def close(self, last: RecordPiece) -> None:
        """Queue the last piece, wait until everything is written, and close the file."""
        self._queue.put(last)
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        working = True
        while (piece := self._queue.get()) is not None:
            if working:
                working = self._try(piece)
            self._queue.task_done()
        machine.files.close(self._descriptor)

    def _try(self, piece: RecordPiece) -> bool:
        try:
            self._write(piece)
        except Exception as error:  # noqa: BLE001 - any failure is reported, and the endpoint continues
            remedy = "; make room or choose another place, then restart" if isinstance(error, OSError) else ""
            remedy = f"; {REMEDY}" if is_scarce(error) else remedy
            self._report(f"the trace {self._path} ends here: {refusal(error)}{remedy}")
            return False
        return True

    def _write(self, piece: RecordPiece) -> None:
        frame, text = self._frame, b""
        if piece.opening is not None:
            if frame is not None:  # The records behind it were dropped.
                self._end = frame.finish(self._encoder.end(None))
                self._frame = None
            self._roll(piece.time)
            if not machine.files.status(self._descriptor).st_nlink:
                raise OSError(errno.ENOENT, "it was removed")
            frame = container.Growing(self._descriptor, self._end)
            text = self._encoder.begin(piece, piece.opening)
        assert frame is not None
        self._frame = frame
        text += self._encoder.records(piece)
        if piece.ending is None:
            frame.add(text)
        else:
            self._end = frame.finish(text + self._encoder.end(piece.ending))
            self._frame = None

    def _roll(self, now: int) -> None:
        """Continue in another file if it is time. The next frame can be replayed without those before."""
        began = self._began = now if self._began is None else self._began
        rolling = self._rolling
        if self._end < self._part_bytes and now - began < rolling.span_ns:
            return
        path = part_path(self._first, self._part + 1)
        descriptor = machine.files.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        machine.files.close(self._descriptor)
        self._older.append((self._path, self._end))
        self._descriptor, self._end, self._path, self._began = descriptor, 0, path, now
        self._part += 1
        self._delete()

    def _delete(self) -> None:
        """Delete the oldest files until the rest, with room for the new one, is within the bounds."""
        rolling, older = self._rolling, self._older
        total = self._part_bytes + sum(size for _, size in older)
        while older and (0 < rolling.keep <= len(older) or 0 < rolling.limit_bytes < total):
            path, size = older.popleft()
            total -= size
            with suppress(FileNotFoundError):
                machine.files.remove(path)
            if not self._told_of_deleting:
                self._told_of_deleting = True
                self._report(
                    f"the trace {self._first} has reached its bound: {path.name} is deleted, and from now on always "
                    "the oldest file; set STABLECAST_TRACE_LIMIT or STABLECAST_TRACE_KEEP for more"
                )
