"""The times for which messages and calls wait in a context: until stable, consumed or recovered, and for the loop.

A context without `metrics=True` has none of this: its sources and sessions have no observers. Blocks and batches are
timed, not messages.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import attrs

from stablecast.client.batch import Batch
from stablecast.client.observer import Observer
from stablecast.core.machine import serial
from stablecast.core.machine.durations import Durations
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import inputs
from stablecast.core.source.outbox import Block
from stablecast.runtime import machine
from stablecast.text.open_metrics import END, buckets, head, label

TICK_NS: Final = 100 * MILLISECOND
"""Time between two looks at the lag of the loop."""

MAX_TIMED: Final = 1 << 12
"""Blocks or batches of one source or session that are timed at once. While so many wait, newer ones are not timed."""

MAX_TOPICS: Final = 100
"""Topics with series of their own; all others share one row."""

OTHER: Final = "*other*"
"""Topic of that row."""


class MeasuredSource(Protocol):
    topic: str

    @property
    def next_number(self) -> int: ...

    @property
    def stable_through(self) -> int:
        """Return the number up to which all messages are stable."""

    def observe(self, observer: Observer) -> None: ...


class MeasuredSession(Protocol):
    @property
    def topic(self) -> str: ...

    def observe(self, observer: Observer) -> None: ...


class MeasuredReceiver(Protocol):
    """A receiver, or a member of a group, as the gauges need it."""

    topic: str

    @property
    def unconsumed(self) -> int:
        """Return the number of messages that were delivered and not consumed."""


@attrs.frozen
class TopicTimes:
    stable: Durations = attrs.field(factory=Durations)
    delivery: Durations = attrs.field(factory=Durations)
    recovery: Durations = attrs.field(factory=Durations)


HISTOGRAMS: Final = (
    ("stablecast_client_stable_seconds", "Time from sending a block of messages until all of it is stable.", "stable"),
    (
        "stablecast_client_delivery_seconds",
        "Time from reading messages from the network until the application has consumed them.",
        "delivery",
    ),
    (
        "stablecast_client_recovery_seconds",
        "Time from noticing that messages are missing until they are delivered, or given up.",
        "recovery",
    ),
)
"""Name, help text and attribute of each histogram of topics."""

LAG: Final = "stablecast_client_loop_lag_seconds"
"""Name of the histogram of the event loop."""

GAUGES: Final = (
    ("stablecast_client_unstable_messages", "Messages sent that are not stable."),
    ("stablecast_client_waiting_messages", "Messages delivered that the application has not consumed."),
)


@attrs.define
class ContextTimes:
    topics: dict[str, TopicTimes] = attrs.field(factory=dict)
    lag: Durations = attrs.field(factory=Durations)
    _loop: asyncio.AbstractEventLoop | None = None
    _timer: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Measure the lag of a loop from now on, ten times a second."""
        self._loop = loop
        self._plan()

    def close(self) -> None:
        """Stop measuring the lag; the histograms stay."""
        if self._timer is not None:
            self._timer.cancel()

    def _plan(self) -> None:
        assert self._loop is not None
        due = machine.clock.monotonic_ns() + TICK_NS
        self._timer = self._loop.call_later(TICK_NS / SECOND, self._ticked, due)

    def _ticked(self, due: int) -> None:
        self.lag.add(machine.clock.monotonic_ns() - due)
        self._plan()

    def of(self, topic: str) -> TopicTimes:
        found = self.topics.get(topic)
        if found is None:
            topic = topic if len(self.topics) < MAX_TOPICS else OTHER
            found = self.topics.setdefault(topic, TopicTimes())
        return found

    def measure_source(self, source: MeasuredSource) -> None:
        source.observe(TimedBlocks(self.of(source.topic).stable, source))

    def measure_session(self, session: MeasuredSession) -> None:
        """Time the batches and losses of a session from now on."""
        session.observe(TimedSession(self.of(session.topic), session.topic))

    def text(self, sources: Iterable[MeasuredSource], receivers: Iterable[MeasuredReceiver]) -> str:
        """Return all as OpenMetrics."""
        return "".join((*self._histograms(), *_gauges(sources, receivers), END))

    def _histograms(self) -> Iterator[str]:
        for name, text, attribute in HISTOGRAMS:
            yield head(name, text, "histogram", openly=True)
            for topic, times in self.topics.items():
                view = getattr(times, attribute).view()
                if view.count:
                    yield buckets(name, f'topic="{label(topic)}"', view, openly=True)
        yield head(LAG, "Time for which a call waited for its turn of the event loop.", "histogram", openly=True)
        # The text format wants a label before that of a bucket.
        yield buckets(LAG, f'loop="{label(type(self._loop).__name__)}"', self.lag.view(), openly=True)


def _gauges(sources: Iterable[MeasuredSource], receivers: Iterable[MeasuredReceiver]) -> Iterator[str]:
    unstable: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for source in sources:
        _add(unstable, source.topic, max(0, source.next_number - 1 - source.stable_through))
    for receiver in receivers:
        _add(waiting, receiver.topic, receiver.unconsumed)
    for (name, text), found in zip(GAUGES, (unstable, waiting), strict=True):
        yield head(name, text, "gauge", openly=True)
        yield from (f'{name}{{topic="{label(topic)}"}} {count}\n' for topic, count in found.items())


def _add(counts: dict[str, int], topic: str, count: int) -> None:
    if topic not in counts and len(counts) >= MAX_TOPICS:
        topic = OTHER
    counts[topic] = counts.get(topic, 0) + count


@attrs.define
class TimedBlocks(Observer):
    """Blocks of a source that left and are not stable: the number after each, and when it left (ns)."""

    times: Durations
    source: MeasuredSource
    _left: deque[tuple[int, int]] = attrs.field(factory=deque)

    def sent(self, block: Block) -> None:
        if len(self._left) < MAX_TIMED:
            self._left.append((block.first + block.count, machine.clock.monotonic_ns()))

    def reclaimed(self, first: int, last: int, *, forced: bool) -> None:
        """Forget blocks that were reclaimed before they were stable."""
        self.stable(first, last)

    def stable(self, first: int, last: int) -> None:
        """Note the time of each block of which all messages are stable now."""
        through, left = self.source.stable_through, self._left
        while left and left[0][0] <= max(through + 1, first):
            stop, since = left.popleft()
            # A block below a gap was reclaimed before it was stable: no time is its time.
            if stop <= through + 1:
                labels = (("topic", self.source.topic), ("number", str(stop - 1)))
                took = machine.clock.monotonic_ns() - since
                self.times.add_example(took, labels, machine.clock.wall_ns())


@attrs.define
class TimedSession(Observer):
    """Batches and losses of a session that are open: the number after each, and when it began (ns)."""

    times: TopicTimes
    topic: str
    _waiting: deque[tuple[int, int]] = attrs.field(factory=deque)
    _lost: deque[tuple[int, int]] = attrs.field(factory=deque)

    def delivered(self, batch: Batch) -> None:
        """Note a batch that goes to the application: what was missing before it is there, or given up."""
        stop, lost = batch.first + batch.count, self._lost
        while lost and serial.extend(lost[0][0], stop) <= stop:
            number, since = lost.popleft()
            self._end(self.times.recovery, number, machine.clock.monotonic_ns() - since)
        if len(self._waiting) < MAX_TIMED:
            self._waiting.append((stop, batch.arrived_ns))

    def consumed(self, first: int, last: int) -> None:
        """End the times of the batches that are consumed up to `last`."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= last + 1:
            stop, since = waiting.popleft()
            self._end(self.times.delivery, stop, machine.clock.wall_ns() - since)

    def missing(self, lost: inputs.Lost) -> None:
        """Note when messages began to be missing."""
        if len(self._lost) < MAX_TIMED:
            self._lost.append((lost.wire_first + lost.count, machine.clock.monotonic_ns()))

    def _end(self, times: Durations, stop: int, took: int) -> None:
        labels = (("topic", self.topic), ("number", str(stop - 1)))
        times.add_example(took, labels, machine.clock.wall_ns())
