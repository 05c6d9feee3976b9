"""The lines of one frame.

    {"frame": 0, "version": 7, "role": "store", "endpoint": ..., "first": 0, "gap": 0, "time": ..., "wall": ...,
     "snapshot": {...}}
    {"n": 0, "t": ..., "in": {"_": "Start"}, "out": []}
    ...
    {"end": 0, "records": 1, "digest": ..., "closed": false}

`first` is the number of the first record, `gap` the number of records before it that a slow disk made the recorder
drop, `time` the machine's clock in ns when the frame began, and `wall` the clock of the host at that time, in ns of the
epoch. Release 0.1.0 wrote no `wall`, and reads traces that have it. `digest` is that of the snapshot at the end, with
which the next frame starts. It is empty if the records after the frame were dropped, because then that snapshot was not
made. `closed` marks the last frame of a trace that its process ended properly. A killed process leaves a last frame
without a last line.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import container
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.errors import TraceError
from stablecast.runtime import garbage_collection
from stablecast.text.json_text import from_json

VERSION: Final = 7
"""Version of the schema of machines, inputs and effects; this core cannot replay another one."""

LIMIT: Final = 1 << 62
"""Bound of the numbers and times of a trace, and of their negatives: tables have columns of 64 bits."""

FREE_VALUES: Final = 1 << 18
"""Lists and objects that a line of any length may have."""

BYTES_OF_VALUE: Final = 32
"""Bytes of a line for each further list or object. An empty one has 3 bytes and takes 72 bytes of memory."""

_SNAPSHOT: Final = b',"snapshot":'
_END: Final = b'{"end":'
_FIELDS: Final = {"frame", "version", "role", "endpoint", "first", "gap", "time"}
"""The fields of the first line, but for the snapshot and `wall`, which is missing in older traces."""

ROLES: Final = {role.name.lower(): role for role in Role}


def _text(snapshot: "Json | bytes") -> bytes:
    return snapshot if isinstance(snapshot, bytes) else text_of(snapshot)


@attrs.frozen
class Head:
    """The first line: owner, place in the trace, and the state from which the frame starts.

    `text` is the snapshot as it was written, so a reader that knows the state need not decode it. `wall` is the host's
    wall clock at `time`, in ns of the epoch, 0 if it is not known.
    """

    frame: int
    role: Role
    endpoint: str
    first: int
    gap: int
    time: int
    text: bytes = attrs.field(converter=_text)
    wall: int = 0

    @cached_property
    def snapshot(self) -> Json:
        """Return the snapshot. Raise TraceError if it is not JSON."""
        return object_of(self.text)

    @cached_property
    def digest(self) -> str:
        return sha256(self.text).hexdigest()


@attrs.frozen
class Foot:
    """The last line; `digest` is empty if the state at the end is unknown."""

    records: int
    digest: str
    closed: bool

    @property
    def ends_known(self) -> bool:
        """Return whether the state at the end is stated; an endpoint that ends properly must state it."""
        return bool(self.digest) or self.closed


@attrs.frozen
class TraceFrame:
    """A frame as it was read: `body` is its lines between the first and the last, `place` names it in sentences."""

    head: Head
    body: bytes
    foot: Foot
    place: str = attrs.field(default="", eq=False)

    @property
    def owner(self) -> tuple[str, str]:
        return self.head.role.name.lower(), self.head.endpoint

    @cached_property
    def count(self) -> int:
        return self.body.count(b"\n")

    @property
    def start(self) -> int:
        """Return the clock at its first record, ns."""
        with suppress(TraceError):
            return self._time_of(self.body[: self.body.find(b"\n") + 1])
        return self.head.time

    @property
    def end(self) -> int:
        """Return the clock at its end, ns. Raise TraceError if its last line is not JSON."""
        return self._time_of(self.body[self.body.rfind(b"\n", 0, -1) + 1 :])

    def _time_of(self, line: bytes) -> int:
        time = object_of(line).get("t") if line else None
        return time if isinstance(time, int) and -LIMIT < time < LIMIT else self.head.time

    @cached_property
    def records(self) -> list[Json]:
        """Return its records as JSON objects. Raise TraceError if a line is none."""
        return self._decoded(self.body.split(b"\n")[:-1])

    def portions(self, count: int) -> Iterator[list[Json]]:
        """Yield its records, `count` at a time, because a frame may be long. Raise TraceError as `records` does."""
        lines = self.body.split(b"\n")[:-1]
        for at in range(0, len(lines), count):
            yield self._decoded(lines[at : at + count])

    def _decoded(self, lines: list[bytes]) -> list[Json]:
        try:
            with garbage_collection.paused():
                return [object_of(line) for line in lines]
        except TraceError as error:
            raise TraceError(f"{self.place}: {error}" if self.place else str(error)) from error


def digest(snapshot: "Json | bytes") -> str:
    return sha256(_text(snapshot)).hexdigest()


def first_line(head: Head) -> bytes:
    first = {
        "frame": head.frame,
        "version": VERSION,
        "role": head.role.name.lower(),
        "endpoint": head.endpoint,
        "first": head.first,
        "gap": head.gap,
        "time": head.time,
    } | ({"wall": head.wall} if head.wall else {})
    return b"%b%b%b}\n" % (text_of(first)[:-1], _SNAPSHOT, head.text)


def last_line(frame: int, foot: Foot) -> bytes:
    return text_of({"end": frame, "records": foot.records, "digest": foot.digest, "closed": foot.closed}) + b"\n"


def frames_from(path: Path, start: int = 0) -> Iterator[tuple[TraceFrame, int]]:
    """Yield the frames of a trace file from the one at byte `start` on, with their offsets.

    Raises:
        TruncatedError: If the file ends in a frame that was finished.
        TraceError: If it cannot be read, is no trace, or is damaged.
    """
    for frame, offset in unread_frames(path, start):
        try:
            _ = frame.head.snapshot
        except TraceError as error:
            raise TraceError(f"{frame.place}: {error}") from error
        _ = frame.records
        yield frame, offset


def unread_frames(path: Path, start: int = 0) -> Iterator[tuple[TraceFrame, int]]:
    """Yield the same without decoding: a frame raises TraceError later, if its snapshot or records are not JSON."""
    for one in FrameReader.at(path, start).read(ended=True):
        yield one.frame, one.offset


UNKNOWN: Final = Foot(0, "", closed=False)
"""The last line of a frame that goes on."""


@attrs.frozen
class FramePortion:
    """Records of the frame at `offset` that come together.

    `begins`: they are its first ones. `foot` is its last line; None: more of the frame may follow.
    """

    head: Head
    offset: int
    body: bytes
    begins: bool
    foot: Foot | None
    place: str = attrs.field(default="", eq=False)

    @classmethod
    def of(cls, frame: TraceFrame, offset: int) -> "FramePortion":
        return cls(frame.head, offset, frame.body, True, frame.foot, frame.place)

    @cached_property
    def frame(self) -> TraceFrame:
        return TraceFrame(self.head, self.body, self.foot or UNKNOWN, self.place)

    def cut(self, count: int) -> tuple["FramePortion", "FramePortion"]:
        """Return the first `count` records, or all of them if there are fewer, and the rest."""
        at = sum(len(line) + 1 for line in self.body.split(b"\n", count)[:count])
        first = attrs.evolve(self, body=self.body[:at], foot=None)
        return first, attrs.evolve(self, body=self.body[at:], begins=False)


@attrs.define
class FrameReader:
    """A trace file, read as far as it goes: the whole of it, or what is new since the reading before."""

    path: Path
    texts: container.TextReader
    _head: Head | None = None
    _held: bytes = b""

    @classmethod
    def at(cls, path: Path, offset: int = 0) -> "FrameReader":
        return cls(path, container.TextReader(path, offset))

    @property
    def offset(self) -> int:
        """Return where the frame begins that is read next, or is being read."""
        return self.texts.offset

    @property
    def between_frames(self) -> bool:
        """Return whether no part of a frame was read."""
        return self.texts.between_frames

    def read(self, *, ended: bool = False) -> Iterator[FramePortion]:
        """Yield what is new; a file that has `ended` has only whole frames. Raise as `container.TextReader.read`."""
        start = self.texts.offset
        for number, text in enumerate(self.texts.read(ended=ended)):
            place = (
                f"{self.path}, the frame at byte {text.offset}"
                if start or not ended
                else f"{self.path}, frame {number}"
            )
            try:
                if text.first and (text.finished or ended):
                    frame = parse_frame(text.lines, place, finished=text.finished)
                    yield FramePortion.of(frame, text.offset)
                else:
                    yield self._portion(text, place)
            except TraceError as error:
                raise TraceError(f"{place}: {error}") from error

    def _portion(self, text: container.FrameText, place: str) -> FramePortion:
        """Return the new records of a frame that grows; its last line stays here until the frame is finished."""
        lines, self._held = self._held + text.lines, b""
        at = 0
        if self._head is None:
            at = lines.find(b"\n") + 1
            self._head = parse_frame(lines[:at], place, finished=False).head
        head, end, foot = self._head, lines.rfind(b"\n", at, -1) + 1 or at, None
        if not is_foot(lines[end:]):
            if text.finished:
                raise TraceError("the frame has no last line; copy the file again from its host")
            end = len(lines)
        elif text.finished:
            foot, self._head = parse_foot(lines[end:], head.frame), None
        else:
            self._held = lines[end:]
        return FramePortion(head, text.offset, lines[at:end], text.first, foot, place)


def places(path: Path, start: int = 0) -> list[int]:
    """Return the offsets of frames from `start` on, an unfinished last one included. Raise as above."""
    found = container.offsets(path, start)
    return found if next(unread_frames(path, found[-1]), None) else found[:-1]


def parse_frame(text: bytes, place: str = "", *, finished: bool = True) -> TraceFrame:
    """Return the frame of these lines; one that was not `finished` may lack its last line.

    Raises:
        TraceError: If they are none.
    """
    begin, end = text.find(b"\n") + 1, text.rfind(b"\n", 0, -1) + 1
    if not finished and not is_foot(text[end : end + len(_END)]):
        end = len(text)
    if not 0 < begin <= end:
        raise TraceError(f"a frame has a first and a last line, this one has {len(text.splitlines())}")
    first, snapshot = _first_line(text[:begin])
    if first.get("version") != VERSION:
        raise TraceError(
            f"the trace is of version {first.get('version')!r} and this program reads version {VERSION}: "
            "verify it with the release that wrote it"
        )
    head = Head(
        _field(first, "frame", int),
        _role(_field(first, "role", str)),
        _field(first, "endpoint", str),
        _field(first, "first", int),
        _field(first, "gap", int),
        _field(first, "time", int),
        snapshot or text_of(_field(first, "snapshot", dict)),
        _field(first, "wall", int) if "wall" in first else 0,
    )
    body = text[begin:end]
    if end == len(text):
        return TraceFrame(head, body, Foot(body.count(b"\n"), "", closed=False), place)
    return TraceFrame(head, body, parse_foot(text[end:], head.frame), place)


def is_foot(line: bytes) -> bool:
    return line.startswith(_END)


def parse_foot(line: bytes, frame: int) -> Foot:
    """Return the last line of the frame with this number. Raise TraceError if it is none."""
    last = object_of(line)
    if _field(last, "end", int) != frame:
        raise TraceError(f"begins as frame {frame} and ends as frame {last['end']}")
    return Foot(_field(last, "records", int), _field(last, "digest", str), _field(last, "closed", bool))


def _first_line(line: bytes) -> tuple[Json, bytes]:
    """Return the fields, and the undecoded text of the snapshot if the recorder's form is kept."""
    before, found, text = line.rstrip().partition(_SNAPSHOT)
    if found and text.startswith(b"{") and text.endswith(b"}}"):
        with suppress(TraceError):
            fields = object_of(before + b"}")
            if fields.keys() - {"wall"} == _FIELDS:
                return fields, text[:-1]
    return object_of(line), b""


def text_of(value: Json) -> bytes:
    """Return the text of a value; the fast encoder writes the same bytes, except for texts that are not ASCII."""
    with suppress(OverflowError):
        text = msgspec.json.encode(value)
        if text.isascii():
            return text
    return json.dumps(value, separators=(",", ":")).encode()


def object_of(line: bytes) -> Json:
    """Return the JSON object of a line. Raise TraceError if it is none, or takes memory out of proportion."""
    if len(line) > FREE_VALUES and line.count(b"{") + line.count(b"[") > FREE_VALUES + len(line) // BYTES_OF_VALUE:
        raise TraceError(f"a line of {len(line):,} bytes has more lists and objects than a recorded one")
    try:
        value = from_json(line)
    except ValueError as error:
        raise TraceError(f"a line is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise TraceError("a line is not a JSON object")
    return value


def _field(line: Json, key: str, kind: type) -> Any:
    value = line.get(key)
    if type(value) is not kind:
        raise TraceError(f"{key!r} should be of type {kind.__name__}, it is {value!r:.80}")
    if isinstance(value, int) and not -LIMIT < value < LIMIT:
        raise TraceError(f"{key!r} does not fit 64 bits")
    return value


def _role(name: str) -> Role:
    if name not in ROLES:
        raise TraceError(f"role {name!r} is unknown")
    return ROLES[name]
