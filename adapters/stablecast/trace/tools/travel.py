"""`stablecast trace open`: travel through time, record by record, in one trace at a time.

Any record's state is that of the snapshot its frame begins with and the inputs since, so a step back costs as little as
a step forward: one frame is restored and replayed.
"""

from bisect import bisect_right
from pathlib import Path

import attrs

from stablecast.trace.converter import Endpoint, Json, decode_input, restore, snapshot
from stablecast.trace.errors import TraceError
from stablecast.trace.frames import Frame, frames_from, unread_frames
from stablecast.trace.names import find, traces_of
from stablecast.trace.tools.records import Record, of_frame
from stablecast.trace.verify import owner_of


@attrs.frozen
class Place:
    """A frame of a trace: where it begins, and its first record with its time (ns)."""

    path: Path
    offset: int
    first: int
    time: int


@attrs.define
class Trace:
    """One trace, opened: its frames by place, and the frame in hand.

    Attributes:
        role: Of the endpoint.
        endpoint: Its name.
        places: Its frames, in order.
        count: One more than its last record.
    """

    role: str
    endpoint: str
    places: list[Place]
    count: int
    _at: int = -1
    _frame: Frame | None = None
    _records: list[Record] = attrs.field(factory=list)

    @classmethod
    def open(cls, parts: list[Path]) -> "Trace":
        """Look at the first and last line of every frame. Raises TraceError."""
        places: list[Place] = []
        count, owner = 0, ("", "")
        for path in parts:
            for frame, offset in unread_frames(path):
                places.append(Place(path, offset, frame.head.first, frame.head.time))
                count, owner = frame.head.first + frame.count, owner_of(frame)
        return cls(*owner, places, count)

    @property
    def first(self) -> int:
        """Its first record; not 0 where older parts are gone."""
        return self.places[0].first if self.places else 0

    def record(self, number: int) -> Record:
        """A record. Raises TraceError if there is none of this number."""
        frame, place = self._hold(number)
        if not self._records:
            self._records = list(of_frame(frame, place.path, place.offset))
        return self._records[number - frame.head.first]

    def state(self, number: int) -> Json:
        """The machine's state after a record. Raises TraceError, SchemaError."""
        frame, _ = self._hold(number)
        machine: Endpoint = restore(frame.head.role, frame.head.snapshot)
        for line in frame.records[: number - frame.head.first + 1]:
            machine.receive(decode_input(frame.head.role, line["in"]), line["t"])  # type: ignore[arg-type] # of its role
            machine.take_effects()
        return snapshot(machine)

    def at_time(self, time: int) -> int:
        """The last record not later than `time` (ns on the machine's clock), or the first one."""
        place = max(0, bisect_right([place.time for place in self.places], time) - 1)
        frame = self._load(place)
        earlier = [line["n"] for line in frame.records if line["t"] <= time]
        return earlier[-1] if earlier else max(self.first, frame.head.first - 1)

    def _hold(self, number: int) -> tuple[Frame, Place]:
        if not self.first <= number < self.count:
            raise TraceError(f"there is no record {number}: this trace has {self.first} to {self.count - 1}")
        at = bisect_right([place.first for place in self.places], number) - 1
        frame = self._load(at)
        if number - frame.head.first >= len(frame.records):
            raise TraceError(f"record {number} is missing: the disk was too slow for the recorder then")
        return frame, self.places[at]

    def _load(self, at: int) -> Frame:
        if at != self._at or self._frame is None:
            place = self.places[at]
            self._frame, _ = next(frames_from(place.path, place.offset))
            self._at, self._records = at, []
        return self._frame


def open_all(paths: list[Path]) -> list[Trace]:
    """The traces that have records. Raises TraceError if there is none."""
    traces = [trace for parts in traces_of(find(paths)) if (trace := Trace.open(parts)).count > trace.first]
    if not traces:
        raise TraceError(f"there are no records in {', '.join(map(str, paths))}")
    return traces
