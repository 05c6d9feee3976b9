"""A recorded source run again under another configuration.

The core's own machine gets the recorded arrivals at the recorded times. Messages are sent at their recorded times, or
as soon as there is credit. A store's acknowledgement follows the send by its recorded delay. So the comparison shows
the effect of the configuration: how long messages wait, when they count as stable, how many are exposed meanwhile. A
trace does not show what stores would do under another load.

The environment of a recorded source: the sends of its application, and the delay of each store's answers.
"""

import heapq
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import attrs

from stablecast.config.options import Value, apply
from stablecast.core.errors import StablecastError
from stablecast.core.machine.serial import wire
from stablecast.core.protocol.effects import Notify
from stablecast.core.protocol.events import Stable, StableFlag
from stablecast.core.protocol.inputs import Arrived, Blocked, Held, Input, Sent, Start, Tick
from stablecast.core.protocol.messages import Role, StableAck
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.converter import decode_input, restore
from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frames import frames_from
from stablecast.evidence.trace.quorums import extended


class WhatIfError(StablecastError):
    """A trace cannot be replayed under another configuration."""


@attrs.frozen
class Answer:
    """An acknowledgement of numbers `first` to `last` of one wish, `delay` ns after they were sent."""

    store_index: int
    first: int
    last: int
    delay: int


@attrs.frozen
class Wish:
    """A send of the application at `time` (ns): `count` numbers from `first` on, `payload_bytes` in all.

    Each number is a message, or all are the pieces of one that was `cut`.
    """

    time: int
    first: int
    count: int
    payload_bytes: int
    answers: tuple[Answer, ...] = ()
    cut: bool = False


@attrs.frozen
class Recording:
    """A life of a source, as its trace shows it.

    Attributes:
        path: The first file of its trace.
        config: As it was.
        first: The number of its first message.
        wishes: What the application sent, and what the stores acknowledged of it.
        others: Everything else that came, with its time.
        ended: The time of the last record, ns.
    """

    path: Path
    config: SourceConfig
    first: int
    wishes: tuple[Wish, ...]
    others: tuple[tuple[int, Input], ...]
    ended: int


def recordings(paths: list[Path]) -> list[Recording]:
    """Return the sources that sent anything.

    Raises:
        TraceError: If a trace cannot be read.
        WhatIfError: If there is none that can be replayed.
    """
    found = [one for parts in traces_of(find(paths)) if (one := _recording(parts)) is not None]
    if not found:
        raise WhatIfError("none of these is the trace of a source from its start on, with messages that were sent")
    return found


def _recording(parts: list[Path]) -> Recording | None:
    config: SourceConfig | None = None
    wishes: list[Wish] = []
    acks: list[tuple[int, StableAck]] = []
    others: list[tuple[int, Input]] = []
    ended = 0
    for machine, time, event in _inputs(parts):
        if config is None:
            if not isinstance(event, Start):
                return None
            config = machine.config
        ended = time
        match event:
            case Sent():
                wishes += _wished(time, event)
            case Arrived(StableAck(nack=False) as ack) if ack.incarnation == config.incarnation:
                acks.append((time, ack))
            case Tick() | Blocked() | Held():
                pass  # These times depend on the configuration, so the machine's own clock and credit decide.
            case _:
                others.append((time, event))
    if config is None or not wishes:
        return None
    return Recording(parts[0], config, wishes[0].first, tuple(_answered(wishes, acks)), tuple(others), ended)


def _inputs(parts: list[Path]) -> Iterator[tuple[SourceEndpoint, int, Input]]:
    """Yield every input of a source's trace, with its time and the machine at the beginning of its frame."""
    for path in parts:
        for frame, _ in frames_from(path):
            if frame.head.role is not Role.SOURCE:
                return
            machine = restore(Role.SOURCE, frame.head.snapshot)
            assert isinstance(machine, SourceEndpoint)
            for line in frame.records:
                yield machine, line["t"], decode_input(Role.SOURCE, line["in"])


def _wished(time: int, event: Sent) -> Iterator[Wish]:
    """Yield the wishes of a run: one for each message that was cut, and one for the plain messages between two."""
    at, stop, told = event.first, event.first + event.count, 0
    parts: list[tuple[int, bool]] = []
    for first, last in event.large:
        parts += [(first, False), (last + 1, True)]
    for end, cut in (*parts, (stop, False)):
        if at < end:
            # The trace has the bytes of the run only.
            upto = event.payload_bytes * (end - event.first) // event.count
            yield Wish(time, at, end - at, upto - told, cut=cut)
            at, told = end, upto


def _answered(wishes: list[Wish], acks: list[tuple[int, StableAck]]) -> Iterator[Wish]:
    """Yield the wishes with their acknowledgements; one acknowledgement may cover many wishes."""
    firsts, times = [wish.first for wish in wishes], [wish.time for wish in wishes]
    answers: list[list[Answer]] = [[] for _ in wishes]
    for time, ack in acks:
        newest = wishes[max(0, bisect_right(times, time) - 1)]
        last = extended(ack.last, newest.first + newest.count)
        first = extended(ack.first, last)
        for at in range(max(0, bisect_right(firsts, first) - 1), bisect_right(firsts, last)):
            wish = wishes[at]
            low, high = max(first, wish.first), min(last, wish.first + wish.count - 1)
            if low <= high:
                answers[at].append(Answer(ack.store_index, low, high, max(0, time - wish.time)))
    for wish, told in zip(wishes, answers, strict=True):
        yield attrs.evolve(wish, answers=tuple(told))


GRACE_NS = 10_000_000_000
"""Time after the last record that is still simulated, because acknowledgements may be later than recorded."""


@attrs.define
class ReplayOutcome:
    """Result of a run; times in ns.

    Attributes:
        messages: Messages that the application wanted to send.
        sent: Messages that were sent.
        stable: Messages that became stable.
        waits: Numbers of messages by the time that they waited for credit.
        latencies: Numbers of messages by the time from the wish to stable.
        most_exposed: Most messages that were sent and not stable at one time.
        exposure: Sum of messages not stable times their duration up to the last record, in message nanoseconds.
    """

    messages: int = 0
    sent: int = 0
    stable: int = 0
    waits: Counter[int] = attrs.field(factory=Counter)
    latencies: Counter[int] = attrs.field(factory=Counter)
    most_exposed: int = 0
    exposure: int = 0


def configured(recording: Recording, options: Mapping[str, Value]) -> SourceConfig:
    """Return the recorded configuration with options set. Raise OptionError, StoreListError, AddressError."""
    return apply("source", recording.config, options)


def replay(recording: Recording, config: SourceConfig) -> ReplayOutcome:
    """Run the recorded source under a configuration. Raise the machine's errors for an invalid one."""
    return _Replay(recording, SourceEndpoint.create(config)).run()


@attrs.define
class _Replay:
    """One run; `due` holds the next events: time, order, and an input or an answer of a store."""

    recording: Recording
    machine: SourceEndpoint
    outcome: ReplayOutcome = attrs.field(factory=ReplayOutcome)
    due: list[tuple[int, int, Input | Answer]] = attrs.field(factory=list)
    order: "count[int]" = attrs.field(factory=count)
    waiting: deque[Wish] = attrs.field(factory=deque)
    wished: list[tuple[int, int, int]] = attrs.field(factory=list)
    exposed: int = 0
    now: int = 0
    shift: int = 0

    def run(self) -> ReplayOutcome:
        recording = self.recording
        for at, event in recording.others:
            heapq.heappush(self.due, (at, next(self.order), event))
        wishes = deque(recording.wishes)
        self.outcome.messages = sum(wish.count for wish in wishes)
        self.now = min(self.due[0][0] if self.due else wishes[0].time, wishes[0].time)
        while (time := self._next(wishes)) is not None and time <= recording.ended + GRACE_NS:
            self._pass(time)
            timer = self.machine.next_timeout()
            if timer is not None and timer <= time:
                self.machine.handle_timeout(time)
                self._take()
            while self.due and self.due[0][0] <= time:
                self._feed(heapq.heappop(self.due)[2])
            while wishes and wishes[0].time <= time:
                self.waiting.append(wishes.popleft())
            self._send()
        return self.outcome

    def _next(self, wishes: deque[Wish]) -> int | None:
        """Return the time of the next event, or None at the end."""
        if not (self.due or wishes or self.exposed or self.waiting):
            return None
        times = [self.due[0][0]] if self.due else []
        times += [wishes[0].time] if wishes else []
        timer = self.machine.next_timeout()
        times += [max(timer, self.now)] if timer is not None else []
        return min(times, default=None)

    def _pass(self, time: int) -> None:
        ended = self.recording.ended
        self.outcome.exposure += self.exposed * (min(time, ended) - min(self.now, ended))
        self.now = time

    def _feed(self, event: Input | Answer) -> None:
        if isinstance(event, Answer):
            if event.store_index >= len(self.machine.config.stores):
                return
            first, last = wire(event.first + self.shift), wire(event.last + self.shift)
            event = Arrived(StableAck(event.store_index, self.machine.config.incarnation, first, last))
        self.machine.receive(event, self.now)  # type: ignore[arg-type] # it was recorded at a source
        self._take()

    def _send(self) -> None:
        """Send waiting messages, as far as there is credit."""
        while self.waiting and self.machine.can_send:
            wish = self.waiting[0]
            credit = self.machine.credit_messages
            some = wish.count if wish.cut and credit else min(wish.count, credit)
            room = self.machine.credit_bytes
            if some < 1 or (room is not None and room * wish.count < wish.payload_bytes * some):
                return
            self._send_run(wish, some)

    def _send_run(self, wish: Wish, some: int) -> None:
        size = wish.payload_bytes * some // wish.count
        first = self.machine.next_number
        if not self.outcome.sent:
            self.shift = first - self.recording.first
        large = ((first, first + some - 1),) if wish.cut else ()
        self.machine.receive(Sent(first, some, size, large), self.now)
        self.outcome.sent += some
        self.outcome.waits[self.now - wish.time] += some
        self.wished.append((first, first + some, wish.time))
        self.exposed += some
        self.outcome.most_exposed = max(self.outcome.most_exposed, self.exposed)
        for answer in wish.answers:
            low, high = max(answer.first, wish.first), min(answer.last, wish.first + some - 1)
            if low <= high:
                part = attrs.evolve(answer, first=low, last=high)
                heapq.heappush(self.due, (self.now + answer.delay, next(self.order), part))
        self.waiting.popleft()
        if some < wish.count:
            left = (wish.first + some, wish.count - some, wish.payload_bytes - size)
            self.waiting.appendleft(Wish(wish.time, *left, wish.answers))
        self._take()

    def _take(self) -> None:
        for effect in self.machine.take_effects():
            match effect:
                case Notify(Stable() as event) if StableFlag.STABLE in event.flags:
                    self._on_stable(event.first, event.last + 1)

    def _on_stable(self, first: int, stop: int) -> None:
        rest: list[tuple[int, int, int]] = []
        for low, high, wished in self.wished:
            begin, end = max(low, first), min(high, stop)
            if begin < end:
                self.outcome.latencies[self.now - wished] += end - begin
                self.outcome.stable += end - begin
                self.exposed -= end - begin
                rest += [(a, b, wished) for a, b in ((low, begin), (end, high)) if a < b]
            else:
                rest.append((low, high, wished))
        self.wished = rest
