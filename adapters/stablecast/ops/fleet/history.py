"""The last minutes of a fleet: what the sparklines show, and when a disk will be full."""

from collections import deque
from collections.abc import Sequence
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.fleet.copies import FleetSource
from stablecast.ops.fleet.survey import Survey

SAMPLES: Final = 90
"""Surveys that are remembered."""

LONGEST_SAMPLES: Final = 1000
"""Looks at the free space of a store that are remembered, one for each survey."""


@attrs.frozen
class FleetSample:
    """The figures of a survey at a time (ns of the epoch): sum of the newest numbers, missing messages, worst lag."""

    time: int
    newest: int
    missing: int
    lag: int


@attrs.define
class FleetHistory:
    """Remember the figures of the last surveys."""

    samples: deque[FleetSample] = attrs.field(factory=lambda: deque(maxlen=SAMPLES))
    rooms: dict[str, deque[tuple[int, int]]] = attrs.field(factory=dict)

    def add(self, surveyed: Survey, sources: Sequence[FleetSource], now_ns: int) -> None:
        """Add a survey. Stores that are gone are forgotten."""
        self.samples.append(
            FleetSample(
                now_ns,
                sum(one.newest for one in sources),
                sum(one.missing for one in sources),
                max((one.lag for one in sources), default=0),
            )
        )
        rooms: dict[str, deque[tuple[int, int]]] = {}
        for store in surveyed.stores:
            free = int(store.record.get("room", (-1, 0))[0])
            known = self.rooms.get(store.name, deque(maxlen=LONGEST_SAMPLES))
            if free >= 0:
                known.append((now_ns, free))
            rooms[store.name] = known
        self.rooms = rooms

    @property
    def span_ns(self) -> int:
        """Return the time from the first to the last sample, ns."""
        return self.samples[-1].time - self.samples[0].time if self.samples else 0

    def rates(self) -> list[float]:
        """Return the messages a second of all sources, between two samples each."""
        pairs = zip(self.samples, list(self.samples)[1:], strict=False)
        return [max(0, after.newest - one.newest) * SECOND / max(1, after.time - one.time) for one, after in pairs]

    def until_full_ns(self, name: str, least: int) -> int | None:
        """Return the time until a store has only `least` bytes free, as it goes now; None if it does not shrink."""
        looks = self.rooms.get(name, deque())
        if len(looks) < 2 or looks[0][0] == looks[-1][0]:
            return None
        (began, first), (ended, last) = looks[0], looks[-1]
        if last >= first:
            return None
        return max(0, last - least) * (ended - began) // (first - last)
