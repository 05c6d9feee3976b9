"""The cost of each resolution strategy, and its behaviour in a bad network, measured in virtual time (T-311).

Two contexts meet in a group that loses datagrams, or over one service. One has the sources, the other the receivers.
All strategies play the same story. All sources and receivers are created at the start. After three minutes the network
is partitioned, for longer than the documented phases last. During the partition one more source and one more receiver
are created.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.srs import events as srs
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.resolution.udp.carriers import MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import Discovered, SendDatagram
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource, DatagramArrived, Resolved
from stablecast.transports.resolution.udp.presets import PRESETS
from stablecast.transports.resolution.udp.settings import ResolutionConfig

DELAY = MILLISECOND
"""Time that a datagram or a write travels."""

STARTED = 65 * SECOND
STEADY = 120 * SECOND
APART = 180 * SECOND
MADE = 181 * SECOND
TOGETHER = 280 * SECOND
OVER = 400 * SECOND
"""Ends of the phases: start, waiting, a minute of steady state, the outage (from APART to TOGETHER), the healing."""

SENDER, WANTER, SERVICE = 0, 1, 2
NAMES = (b"sender..", b"wanter..")
LATE = "made in the outage"
PERCENT = 100


@attrs.frozen
class Story:
    """One measurement: a number of topics with a source each, the number of wanted topics, and the loss in percent."""

    preset: str
    topics: int
    wanted: int
    loss: int


@attrs.define
class StrategyCost:
    """The traffic of one measurement, and its result.

    Attributes:
        start_datagrams: Datagrams (for `tcp`, writes) until `STARTED`; `start_bytes` in them.
        steady_bytes: Bytes in the minute before the outage.
        resolved: Topics found before the outage.
        slowest: Time at which the last of them was found (ns).
        healed: Time from the end of the outage until the source created in it was found (ns); None: never.
    """

    start_datagrams: int = 0
    start_bytes: int = 0
    steady_bytes: int = 0
    resolved: int = 0
    slowest: int = 0
    healed: int | None = None

    def sent(self, octets: int, now: int) -> None:
        """Count the bytes of one datagram or write."""
        if now < STARTED:
            self.start_datagrams += 1
            self.start_bytes += octets
        elif STEADY <= now < APART:
            self.steady_bytes += octets

    def found(self, topic: str, now: int) -> None:
        """Note a topic that was found for the first time."""
        if topic == LATE:
            self.healed = now - TOGETHER
        else:
            self.resolved += 1
            self.slowest = max(self.slowest, now)


def measure(story: Story) -> StrategyCost:
    """Play a story and return its cost; the same story always has the same cost."""
    config = PRESETS[story.preset].config
    return _Services(story).play() if config is None else _Datagrams(story, config).play()


def _is_apart(now: int) -> bool:
    return APART <= now < TOGETHER


def _source(topic: str, index: int) -> AddSource:
    return AddSource(topic, "10.0.0.1:14371", 7, index, "10.0.0.1:14391", persistent=True)


def _events(story: Story) -> Iterator[tuple[int, int, AddSource | AddReceiver]]:
    """Yield the time, the context and the input of each event."""
    for index in range(story.topics):
        yield 0, SENDER, _source(f"topic/{index}", index)
    for index in range(story.wanted):
        yield 0, WANTER, AddReceiver(f"topic/{index}")
    yield MADE, SENDER, _source(LATE, story.topics)
    yield MADE, WANTER, AddReceiver(LATE)


class _Network:
    """The story of two contexts, and of the service between them if there is one."""

    def __init__(self, story: Story, machines: Sequence[ResolutionContext | SrsContext | ResolutionService]) -> None:
        self.cost = StrategyCost()
        self._story = story
        self._machines: Sequence[Any] = machines
        self._known: set[str] = set()
        self._flying: list[tuple[int, int, int, object]] = []
        self._count = 0

    def play(self) -> StrategyCost:
        events = sorted(_events(self._story), key=lambda event: event[0])
        while True:
            dues = [(machine.next_timeout(), at) for at, machine in enumerate(self._machines)]
            timeout, at = min(((due, at) for due, at in dues if due is not None), default=(OVER, SENDER))
            arrival = self._flying[0][0] if self._flying else OVER
            now = min(timeout, arrival)
            if events and events[0][0] <= now:
                now, at, event = events.pop(0)
                self._machines[at].receive(event, now)
            elif now >= OVER:
                return self.cost
            elif arrival <= timeout:
                _, _, at, arrived = heapq.heappop(self._flying)
                self._machines[at].receive(arrived, now)
            else:
                self._machines[at].handle_timeout(now)
            self._perform(at, now)

    def _perform(self, at: int, now: int) -> None:
        for effect in self._machines[at].take_effects():
            if not isinstance(effect, Discovered):
                self._send(at, effect, now)
            elif effect.topic not in self._known:
                self._known.add(effect.topic)
                self.cost.found(effect.topic, now)
                self._machines[at].receive(Resolved(effect.topic), now)

    def _send(self, at: int, effect: object, now: int) -> None:
        """Put on its way what one machine sends."""
        raise NotImplementedError

    def _fly(self, at: int, event: object, now: int) -> None:
        self._count += 1
        heapq.heappush(self._flying, (now + DELAY, self._count, at, event))


class _Datagrams(_Network):
    """The story of two contexts in one group."""

    def __init__(self, story: Story, config: ResolutionConfig) -> None:
        super().__init__(story, [ResolutionContext.create(name, MulticastGroup(), config) for name in NAMES])
        self._chance = Seeded(story.loss)

    def _send(self, at: int, effect: object, now: int) -> None:
        if isinstance(effect, SendDatagram):
            self.cost.sent(len(effect.data), now)
            if not _is_apart(now) and self._chance.below(PERCENT) >= self._story.loss:
                self._fly(1 - at, DatagramArrived(effect.data, "10.0.0.9:12965"), now)


class _Services(_Network):
    """The story of two contexts at one service. Loss only delays TCP, so it is left out; a partition is silence."""

    def __init__(self, story: Story) -> None:
        contexts = [SrsContext.create(name, ["srs:27000"], at) for at, name in enumerate(NAMES)]
        super().__init__(story, [*contexts, ResolutionService(1)])

    def _send(self, at: int, effect: object, now: int) -> None:
        match effect:
            case srs.Connect(connection) if _is_apart(now):
                self._fly(at, srs.ConnectionClosed(connection, "no route"), now)
            case srs.Connect(connection):
                self._fly(SERVICE, srs.ConnectionAccepted(_number(at, connection), f"10.0.0.{at}:1"), now)
                self._fly(at, srs.ConnectionOpened(connection, f"10.0.0.{at}:1"), now)
            case srs.SendBytes(connection, data) if at == SERVICE:
                self._write(connection % 2, srs.BytesReceived(connection // 2, data), now)
            case srs.SendBytes(connection, data):
                self._write(SERVICE, srs.BytesReceived(_number(at, connection), data), now)

    def _write(self, at: int, event: srs.BytesReceived, now: int) -> None:
        self.cost.sent(len(event.data), now)
        if not _is_apart(now):
            self._fly(at, event, now)


def _number(at: int, connection: int) -> int:
    """Return the service's number of a context's connection."""
    return 2 * connection + at


HEAD = (
    "strategy",
    "topics",
    "wanted",
    "loss",
    "found",
    "slowest",
    "datagrams in 65 s",
    "kB in 65 s",
    "kB a minute later on",
    "after the outage",
)


def cells(story: Story, cost: StrategyCost) -> tuple[str, ...]:
    healed = "**deaf**" if cost.healed is None else f"found after {cost.healed / SECOND:.2f} s"
    return (
        story.preset,
        str(story.topics),
        str(story.wanted),
        f"{story.loss} %",
        f"{cost.resolved}",
        f"{cost.slowest / SECOND:.2f} s",
        str(cost.start_datagrams),
        f"{cost.start_bytes / 1_000:.1f}",
        f"{cost.steady_bytes / 1_000:.1f}",
        healed,
    )


def stories(topics: int, wanted: int, losses: tuple[int, ...]) -> Iterator[Story]:
    """Yield the stories of all strategies in networks of one size, without loss for TCP."""
    for preset, found in PRESETS.items():
        for loss in losses if found.config is not None else (0,):
            yield Story(preset, topics, wanted, loss)
