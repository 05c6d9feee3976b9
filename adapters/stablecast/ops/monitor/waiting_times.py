"""Measure how long receivers and holes wait, from one sweep of the monitor to the next.

A store could note the instant of each message and acknowledgement, but that would cost every message. A sweep compares
two numbers instead. Each time is an upper bound that is at most one sweep too long.
"""

import attrs

from stablecast.core.machine.durations import Durations
from stablecast.store.observatory import ReceiverView, SourceView


@attrs.define
class WaitingTimes:
    """The waits of one source, at most one for each receiver.

    Attributes:
        numbers: The newest number at the beginning of a wait, by the receiver's RegID.
        since: When that wait began (ns).
        holes_since: When the source began to have holes (ns); 0 while it has none.
    """

    numbers: dict[int, int] = attrs.field(factory=dict)
    since: dict[int, int] = attrs.field(factory=dict)
    holes_since: int = 0

    def update(self, view: SourceView, times: "StoreTimes", before_ns: int, now_ns: int) -> None:
        """Compare a source with its last look at `before_ns`, and add the waits that ended to `times`."""
        for receiver in view.receivers:
            self._receiver(view, receiver, times, before_ns, now_ns)
        if len(self.numbers) > len(view.receivers):
            here = {receiver.reg_id for receiver in view.receivers}
            for reg_id in [one for one in self.numbers if one not in here]:
                self._drop(reg_id)
        if view.holes:
            self.holes_since = self.holes_since or now_ns
        elif self.holes_since:
            times.recovery.add_example(now_ns - self.holes_since, _labels(view), now_ns)
            self.holes_since = 0

    def _receiver(
        self, view: SourceView, receiver: ReceiverView, times: "StoreTimes", before_ns: int, now_ns: int
    ) -> None:
        reg_id, newest = receiver.reg_id, view.window[2]
        if not receiver.active:
            self._drop(reg_id)
            return
        if reg_id in self.numbers and receiver.acknowledged >= self.numbers[reg_id]:
            labels = (*_labels(view), ("receiver", str(reg_id)))
            times.delivery.add_example(now_ns - self.since[reg_id], labels, now_ns)
            self._drop(reg_id)
        if reg_id not in self.numbers and receiver.acknowledged < newest:
            self.numbers[reg_id], self.since[reg_id] = newest, before_ns or now_ns

    def _drop(self, reg_id: int) -> None:
        self.numbers.pop(reg_id, None)
        self.since.pop(reg_id, None)


@attrs.define
class StoreTimes:
    """The histograms that a monitor measures for one store.

    Attributes:
        loop_lag: How long a call waited for a turn of the store's loop.
        delivery: How long a message was here before a receiver acknowledged it.
        recovery: How long a source had holes.
    """

    loop_lag: Durations = attrs.field(factory=Durations)
    delivery: Durations = attrs.field(factory=Durations)
    recovery: Durations = attrs.field(factory=Durations)


def _labels(view: SourceView) -> tuple[tuple[str, str], ...]:
    return ("topic", view.topic), ("source", str(view.reg_id))
