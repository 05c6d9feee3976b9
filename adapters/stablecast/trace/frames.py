"""The lines of one frame.

    {"frame": 0, "version": 2, "role": "store", "endpoint": ..., "first": 0, "gap": 0, "time": ..., "snapshot": {...}}
    {"n": 0, "t": ..., "in": {"_": "Start"}, "out": []}
    ...
    {"end": 0, "records": 1, "digest": ..., "closed": false}

`first` is the number of the first record, `gap` how many records before it were dropped because the disk was too slow,
`time` the machine's clock in ns when the frame began. `digest` is that of the snapshot at the end, which is the one
that the next frame starts with. `closed` marks the last frame of a trace that its process ended properly.
"""

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.messages import Role
from stablecast.trace import container
from stablecast.trace.collecting import uncollected
from stablecast.trace.converter import Json
from stablecast.trace.errors import TraceError

VERSION: Final = 2
"""Of the schema of machines, inputs and effects; another one cannot be replayed by this core."""

LIMIT: Final = 1 << 62
"""Numbers and times of a trace lie below it, and above its negative: tables have columns of 64 bits."""

ROLES: Final = {role.name.lower(): role for role in Role}


@attrs.frozen
class Head:
    """The first line: whose frame this is, where in the trace it stands and what it starts from."""

    frame: int
    role: Role
    endpoint: str
    first: int
    gap: int
    time: int
    snapshot: Json


@attrs.frozen
class Foot:
    """The last line."""

    records: int
    digest: str
    closed: bool


@attrs.frozen
class Frame:
    """A frame as it was read; `records` are as JSON has them."""

    head: Head
    records: list[Json]
    foot: Foot


def digest(snapshot: Json) -> str:
    """Returns what stands for a snapshot."""
    return sha256(_line(snapshot)).hexdigest()


def write_frame(head: Head, records: Iterable[Json], foot: Foot) -> bytes:
    """Returns the lines of a frame."""
    first = {
        "frame": head.frame,
        "version": VERSION,
        "role": head.role.name.lower(),
        "endpoint": head.endpoint,
        "first": head.first,
        "gap": head.gap,
        "time": head.time,
        "snapshot": head.snapshot,
    }
    last = {"end": head.frame, "records": foot.records, "digest": foot.digest, "closed": foot.closed}
    return b"\n".join([_line(first), *(_line(record) for record in records), _line(last), b""])


def read_frames(path: Path) -> Iterator[Frame]:
    """Yields the frames of a trace file.

    Raises:
        TruncatedError: If the file ends in a frame that was finished.
        TraceError: If it cannot be read, is no trace, or is damaged.
    """
    for frame, _ in frames_from(path):
        yield frame


def frames_from(path: Path, start: int = 0) -> Iterator[tuple[Frame, int]]:
    """Yields the frames of a trace file from the one at byte `start` on, and where each begins. Raises as above."""
    for number, (offset, text) in enumerate(container.texts_from(path, start)):
        try:
            yield parse_frame(text), offset
        except TraceError as error:
            place = f"the frame at byte {offset}" if start else f"frame {number}"
            raise TraceError(f"{path}, {place}: {error}") from error


def parse_frame(text: bytes) -> Frame:
    """Returns the frame that these lines say.

    Raises:
        TraceError: If they are none.
    """
    lines = text.splitlines()
    if len(lines) < 2:
        raise TraceError(f"a frame has a first and a last line, this one has {len(lines)}")
    with uncollected():
        first, *records, last = (_object(line) for line in lines)
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
        _field(first, "snapshot", dict),
    )
    if _field(last, "end", int) != head.frame:
        raise TraceError(f"begins as frame {head.frame} and ends as frame {last['end']}")
    return Frame(
        head, records, Foot(_field(last, "records", int), _field(last, "digest", str), _field(last, "closed", bool))
    )


def _line(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _object(line: bytes) -> Json:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
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
