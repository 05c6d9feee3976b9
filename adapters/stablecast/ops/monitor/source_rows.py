"""Keep figures and the last samples of every source between sweeps.

A row is updated in place, and full records exist only while a viewer looks at them. A sweep thus leaves no new objects
for the garbage collector, whose pauses would stop the stores' threads longer the more sources there are.
"""

from array import array

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import health
from stablecast.ops.monitor.health import HealthFinding, Urgency
from stablecast.store.observatory import SourceView

SAMPLES = 90
"""Most samples of one figure."""


@attrs.define
class SampleSeries:
    """Keep the last `SAMPLES` values, the newest last."""

    values: "array[float]" = attrs.field(factory=lambda: array("f"))

    def add(self, value: float) -> None:
        """Append one sample and drop the oldest beyond `SAMPLES`."""
        self.values.append(value)
        if len(self.values) > SAMPLES:
            del self.values[0]

    @property
    def newest(self) -> float:
        """The last sample; 0 before the first."""
        return self.values[-1] if self.values else 0.0


ClientFinding = tuple[int, HealthFinding]
"""RegID of a client, and a finding about it."""
Reader = tuple[int, int, bool]
"""RegID of a receiver, its lag in messages, and whether it is active."""


def findings_of(view: SourceView) -> tuple[ClientFinding, ...]:
    """Return the findings of a source and its receivers, the most urgent first."""
    found = [(view.reg_id, finding) for finding in health.of_source(view)]
    found += [(one.reg_id, finding) for one in view.receivers for finding in health.of_receiver(one, view)]
    return tuple(sorted(found, key=lambda pair: -pair[1].level))


@attrs.define(eq=False)
class SourceRow:
    """Hold a source as of the last sweep. `lag` is that of its slowest receiver."""

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
    naks: int = 0
    duplicates: int = 0
    lag: int = 0
    level: Urgency = Urgency.OK
    findings: tuple[ClientFinding, ...] = ()
    readers: tuple[Reader, ...] = ()
    rates: SampleSeries = attrs.field(factory=SampleSeries)
    lags: SampleSeries = attrs.field(factory=SampleSeries)
    taken_ns: int = 0

    def update(self, view: SourceView, now_ns: int) -> int:
        """Update the row from a view; return how many numbers are new, 0 at the first update."""
        news = max(0, view.window[2] - self.lead) if self.taken_ns else 0
        if self.taken_ns and now_ns > self.taken_ns:
            self.rates.add(news * SECOND / (now_ns - self.taken_ns))
        self.taken_ns = now_ns
        self.topic, self.session_id, self.active = view.topic, view.session_id, view.active
        self.messages, self.lead = view.messages, view.window[2]
        self.memory_bytes, self.disk_bytes = view.memory[0], view.offsets[1]
        self.holes, self.lost, self.bursts, self.drops = view.holes, view.lost, view.bursts[2], view.drops[1]
        self.received = view.traffic.received
        self.naks, self.duplicates = view.traffic.naks, view.traffic.duplicates
        self.lag = max((receiver.lag for receiver in view.receivers), default=0)
        self.lags.add(self.lag)
        self.readers = tuple((one.reg_id, one.lag, one.active) for one in view.receivers)
        self.findings = findings_of(view)
        self.level = self.findings[0][1].level if self.findings else Urgency.OK
        return news
