"""`stablecast trace open`: travel through time, record by record, in one trace at a time.

Opening reads the index only, however long a trace is. The state at a record is the snapshot of its frame plus the
inputs since. States are kept on the way through a frame, so a step back replays few records too.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import converter
from stablecast.evidence.trace.converter import INPUTS, Endpoint, Json, restore, snapshot
from stablecast.evidence.trace.errors import SchemaError, TraceError
from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frames import ROLES, TraceFrame, object_of, text_of, unread_frames
from stablecast.evidence.trace.frames import places as places_in
from stablecast.evidence.trace.record_reader import reader
from stablecast.evidence.trace.tools.message_history import why
from stablecast.evidence.trace.tools.records import RecordFilter, TraceRecord, kinds, of_line, sentence, shown
from stablecast.runtime import garbage_collection

SPACING: Final = 512
"""Records between two kept states of a frame: the most that a step back replays. To keep one costs as much as to
replay 50 records.
"""

MAX_STATES: Final = 32
"""Kept states of a frame: in a long frame they are further apart, because frames of large states are long."""


@attrs.frozen
class FramePlace:
    """The beginning of a frame: its file, and the offset in bytes."""

    path: Path
    offset: int


@attrs.frozen
class Begin:
    """The number of a frame's first record, and the clock there (ns)."""

    first: int
    time: int


@attrs.define
class OpenedFrame:
    """The current frame; `replayed` counts the records that were replayed.

    `states` has the text of the state after each `spacing` records, as far as the frame was replayed. The machine is in
    the state after `_after` records of the frame.
    """

    frame: TraceFrame
    place: FramePlace
    lines: list[bytes]
    states: list[bytes] = attrs.field(factory=list)
    replayed: int = 0
    _machine: Endpoint | None = None
    _after: int = 0

    @classmethod
    def at(cls, place: FramePlace) -> "OpenedFrame":
        """Read a frame; its records are decoded on demand. Raise TraceError."""
        frame, _ = next(unread_frames(place.path, place.offset))
        return cls(frame, place, frame.body.split(b"\n")[:-1])

    @property
    def spacing(self) -> int:
        """Return the number of records between two kept states."""
        return max(SPACING, -(-len(self.lines) // MAX_STATES))

    def record(self, index: int) -> TraceRecord:
        """Return the record after `index` others. Raise TraceError if it is malformed."""
        return of_line(self.frame, self.lines[index], self.place.path, self.place.offset)

    def state(self, count: int) -> Json:
        """Return the machine's state after `count` records. Raise SchemaError if one is malformed."""
        spacing = self.spacing
        if not self.states:
            self.states.append(self.frame.head.text)
        kept = min(count // spacing, len(self.states) - 1)
        if self._machine is None or not kept * spacing <= self._after <= count:
            self._machine = restore(self.frame.head.role, object_of(self.states[kept]))
            self._after = kept * spacing
        with garbage_collection.paused():
            while self._after < count:
                self._replay(min(count, (self._after // spacing + 1) * spacing))
        return snapshot(self._machine)

    def _replay(self, until: int) -> None:
        machine: Any = self._machine
        known = reader(INPUTS[self.frame.head.role])
        try:
            records = known.records(b"\n".join(self.lines[self._after : until]))
        except msgspec.MsgspecError as error:
            raise SchemaError(f"{self.frame.place}: not a record: {error}") from error
        for record in records:
            machine.receive(known.inputs[record.event.__class__](record.event), record.t)
            machine.take_effects()
        self.replayed += len(records)
        self._after = until
        if until == len(self.states) * self.spacing:
            self.states.append(text_of(snapshot(machine)))


@attrs.define
class Trace:
    """An opened trace: its frames by place, and the current frame.

    Attributes:
        role: Of the endpoint.
        endpoint: Its name.
        places: Its frames, in order.
        first: Its first record; not 0 where older parts are gone.
        count: One more than its last record.
    """

    role: str
    endpoint: str
    places: list[FramePlace]
    first: int
    count: int
    _begins: dict[int, Begin] = attrs.field(factory=dict)
    _at: int = -1
    _opened: OpenedFrame | None = None

    @classmethod
    def open(cls, parts: list[Path]) -> "Trace":
        """Read the index, the first frame and the last one. Raise TraceError."""
        places = [FramePlace(path, offset) for path in parts for offset in places_in(path)]
        if not places:
            return cls("", "", [], 0, 0)
        first, last = (OpenedFrame.at(place).frame for place in (places[0], places[-1]))
        return cls(*first.owner, places, first.head.first, last.head.first + last.count)

    def record(self, number: int) -> TraceRecord:
        """Return a record. Raise TraceError if there is none of this number."""
        opened, index = self._hold(number)
        return opened.record(index)

    def state(self, number: int) -> Json:
        """Return the machine's state after a record. Raise TraceError, SchemaError."""
        opened, index = self._hold(number)
        return opened.state(index + 1)

    def at_time(self, time: int) -> int:
        """Return the last record not later than `time` (ns on the machine's clock), or the first one."""
        frames = range(len(self.places))
        opened = self.frame(max(0, bisect_right(frames, time, key=lambda at: self.begin(at).time) - 1))
        count = bisect_right(range(len(opened.lines)), time, key=lambda index: opened.record(index).time)
        return max(self.first, opened.frame.head.first + count - 1)

    def begin(self, at: int) -> Begin:
        """Return the beginning of the frame at one of the places. Raise TraceError."""
        if at not in self._begins:
            head = OpenedFrame.at(self.places[at]).frame.head
            self._begins[at] = Begin(head.first, head.time)
        return self._begins[at]

    def frame(self, at: int) -> OpenedFrame:
        """Return the frame at one of the places and make it the current one. Raise TraceError."""
        if at != self._at or self._opened is None:
            self._opened, self._at = OpenedFrame.at(self.places[at]), at
        return self._opened

    def _hold(self, number: int) -> tuple[OpenedFrame, int]:
        if not self.first <= number < self.count:
            raise TraceError(f"there is no record {number}: this trace has {self.first} to {self.count - 1}")
        held = self._opened
        if held is None or not 0 <= number - held.frame.head.first < len(held.lines):
            frames = range(len(self.places))
            held = self.frame(bisect_right(frames, number, key=lambda at: self.begin(at).first) - 1)
        index = number - held.frame.head.first
        if index >= len(held.lines):
            raise TraceError(f"record {number} is missing: the disk was too slow for the recorder then")
        return held, index


def prepare(role: Role) -> None:
    """Make the decoders of the first state and the first record of a role now."""
    converter.prepare(role)
    reader(INPUTS[role])


def open_all(paths: list[Path]) -> list[Trace]:
    """Return the traces that have records. Raise TraceError if there is none."""
    traces = [trace for parts in traces_of(find(paths)) if (trace := Trace.open(parts)).count > trace.first]
    if not traces:
        raise TraceError(f"there are no records in {', '.join(map(str, paths))}")
    return traces


HELP = """\
  traces            the endpoints, by number
  use N             look at endpoint N
  next [N], n       N records forward (1); an empty line repeats it
  back [N], b       N records back (1)
  goto RECORD       to a record
  time SECONDS      to the last record not later than this
  find KIND         to the next record with such an input, effect, message or event
  state [FIELD]     the machine's state after this record, or one field of it (config.topic)
  why NUMBER        what became of the message with this sequence number, by all traces
  help, quit, q"""


class WrongWordError(TraceError):
    """A command is unknown or has a wrong argument."""


@attrs.define
class TravelSession:
    """The current place in each trace; `run` reads lines and prints lines."""

    paths: list[Path]
    traces: list[Trace]
    using: int = 0
    at: list[int] = attrs.field(factory=list)
    over: bool = False
    last: str = "next"

    @classmethod
    def open(cls, paths: list[Path]) -> "TravelSession":
        """Open all traces, each at its first record. Raise TraceError."""
        traces = open_all(paths)
        return cls(paths, traces, at=[trace.first for trace in traces])

    def prepare(self) -> None:
        """Do now the slow part of the first state of each role, before somebody waits for it."""
        for role in {trace.role for trace in self.traces}:
            prepare(ROLES[role])

    @property
    def trace(self) -> Trace:
        return self.traces[self.using]

    def run(self, lines: Iterable[str], say: Callable[[str], None]) -> int:
        """Run commands until `quit` or the end; return the number of wrong ones."""
        wrong = 0
        for line in lines:
            try:
                for told in self.do(line.strip() or self.last):
                    say(told)
            except TraceError as error:
                wrong += 1
                say(str(error))
            if self.over:
                break
        return wrong

    def do(self, line: str) -> Iterator[str]:
        """Run one command. Raise TraceError."""
        word, *rest = line.split()
        argument = rest[0] if rest else ""
        if word in ("next", "n", "back", "b", "find"):
            self.last = line
        match word:
            case "traces" | "use" | "help" | "quit" | "q":
                yield from self._about(word, argument)
            case "next" | "n" | "back" | "b":
                self._move(self.at[self.using] + (1 if word[0] == "n" else -1) * _whole(argument or "1"))
                yield from self._here()
            case "goto":
                self._move(_whole(argument))
                yield from self._here()
            case "time":
                self._move(self.trace.at_time(_nanoseconds(argument)))
                yield from self._here()
            case "find":
                yield from self._find(argument)
            case "state":
                yield from _pretty(self.trace.state(self.at[self.using]), argument)
            case "why":
                yield from story(self.paths, _whole(argument))
            case _:
                raise WrongWordError(f"'{word}' means nothing here; 'help' shows what does")

    def _about(self, word: str, argument: str) -> Iterator[str]:
        match word:
            case "traces":
                for number, trace in enumerate(self.traces):
                    mark = "*" if number == self.using else " "
                    yield f"{mark}{number:>3} {trace.role} {trace.endpoint}, records {trace.first} to {trace.count - 1}"
            case "use":
                chosen = _whole(argument)
                if not 0 <= chosen < len(self.traces):
                    raise WrongWordError(f"there is no endpoint {chosen}: 'traces' shows them")
                self.using = chosen
                yield from self._here()
            case "help":
                yield HELP
            case "quit" | "q":
                self.over = True

    def _move(self, number: int) -> None:
        self.trace.record(number)
        self.at[self.using] = number

    def _here(self) -> Iterator[str]:
        yield from sentence(self.trace.record(self.at[self.using]))

    def _find(self, kind: str) -> Iterator[str]:
        wanted = RecordFilter(kind=kind)
        for number in range(self.at[self.using] + 1, self.trace.count):
            if self.trace.record(number) in wanted:
                self.at[self.using] = number
                yield from self._here()
                return
        raise WrongWordError(f"no record from here on has '{kind}'")


def story(paths: list[Path], number: int) -> Iterator[str]:
    steps = why(paths, number)
    if not steps:
        yield f"no trace has a message {number}"
    life = None
    for step in steps:
        if step.life != life:
            life = step.life
            yield f"message {number} of life {life:#x}"
        seconds = f"{step.time // SECOND}.{step.time % SECOND:09d}"
        yield f"  {step.role} {step.endpoint}, record {step.record} at {seconds}: {step.text}"


def _pretty(state: Json, field: str) -> Iterator[str]:
    value: object = state
    for name in filter(None, field.split(".")):
        if not isinstance(value, dict) or name not in value:
            known = ", ".join(value) if isinstance(value, dict) else "none"
            raise WrongWordError(f"there is no field '{name}' in it; there are: {known}")
        value = value[name]
    if isinstance(value, dict) and any(kinds(value)):
        yield shown(value)
    else:
        yield msgspec.json.format(json.dumps(value), indent=1)  # the library's own indents in Python, 20 ms of a store


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WrongWordError(f"'{text}' is not a whole number") from None


def _nanoseconds(text: str) -> int:
    whole, _, fraction = text.partition(".")
    return _whole(whole) * SECOND + _whole((fraction or "0").ljust(9, "0")[:9])
