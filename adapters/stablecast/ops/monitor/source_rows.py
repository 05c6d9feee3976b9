"""What is remembered of every source between sweeps: the figures of tables and metrics, and the last minutes of two.

A row is changed in place, and full records are made only of sources that somebody looks at. So a sweep leaves nothing
new behind for the collector of garbage, which would stop the stores' threads the longer the more sources there are.
"""

from array import array

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import health
from stablecast.ops.monitor.health import Finding, Level
from stablecast.store.observatory import ReceiverView, SourceView

SAMPLES = 90
"""Samples kept of each figure."""


@attrs.define
class Series:
    """Newest last; `values` may be read, and has at most `SAMPLES`."""

    values: "array[float]" = attrs.field(factory=lambda: array("f"))

    def add(self, value: float) -> None:
        """One sample more."""
        self.values.append(value)
        if len(self.values) > SAMPLES:
            del self.values[0]

    @property
    def newest(self) -> float:
        """The last sample; 0 before the first."""
        return self.values[-1] if self.values else 0.0


Said = tuple[int, Finding]
"""Of whom, by RegID, and what."""
Reader = tuple[int, int, bool]
"""A receiver's RegID, its lag, and whether it is active."""


def said_of(view: SourceView) -> tuple[Said, ...]:
    """What is to be said of a source and its receivers, the most urgent first."""
    said = [(view.reg_id, finding) for finding in health.of_source(view)]
    said += [(one.reg_id, finding) for one in view.receivers for finding in health.of_receiver(one, view)]
    return tuple(sorted(said, key=lambda pair: -pair[1].level))


def lag_of(receivers: tuple[ReceiverView, ...]) -> int:
    """How many messages the slowest has still to acknowledge."""
    return max((receiver.lag for receiver in receivers), default=0)


@attrs.define(eq=False)
class Row:
    """A source as the last sweep saw it. `lag` is that of its slowest receiver."""

    reg_id: int
    topic: str = ""
    session_id: int = 0
    active: bool = True
    messages: int = 0
    lead: int = -1
    memory_bytes: int = 0
    disk_bytes: int = 0
    holes: int = 0
    lost: int = 0
    bursts: int = 0
    drops: int = 0
    received: int = 0
    lag: int = 0
    level: Level = Level.OK
    said: tuple[Said, ...] = ()
    readers: tuple[Reader, ...] = ()
    rates: Series = attrs.field(factory=Series)
    lags: Series = attrs.field(factory=Series)
    taken_ns: int = 0

    def update(self, view: SourceView, now_ns: int) -> int:
        """Take what is seen now; returns how many numbers are new, none at the first look."""
        news = max(0, view.window[2] - self.lead) if self.taken_ns else 0
        if self.taken_ns and now_ns > self.taken_ns:
            self.rates.add(news * SECOND / (now_ns - self.taken_ns))
        self.taken_ns = now_ns
        self.topic, self.session_id, self.active = view.topic, view.session_id, view.active
        self.messages, self.lead = view.messages, view.window[2]
        self.memory_bytes, self.disk_bytes = view.memory[0], view.offsets[1]
        self.holes, self.lost, self.bursts, self.drops = view.holes, view.lost, view.bursts[2], view.drops[1]
        self.received = view.traffic.received
        self.lag = lag_of(view.receivers)
        self.lags.add(self.lag)
        self.readers = tuple((one.reg_id, one.lag, one.active) for one in view.receivers)
        self.said = said_of(view)
        self.level = self.said[0][1].level if self.said else Level.OK
        return news
