"""The world of `tests.support.world` without its stores: virtual time, ordered links, sources and receivers.

Messages travel as core messages (no bytes) with a fixed delay per link, in order, like TCP. Crashes close links:
whoever sends to a dead address learns `Gone`. It drives the unmodified endpoints by the contract of `stablecast.core`.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import inputs
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.messages import Message, ReceiverAlive
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint, SourceState
from tests.support.disk import SIZE

LINK_NS = MILLISECOND // 10
Content = tuple[int, int]
"""What a message is in this world: (incarnation, number). Payload tests compare these."""


@attrs.define
class World:
    """Everybody, by address; `now` in ns. `told` hears of every effect before it is performed."""

    now: int = 0
    nodes: dict[str, "Node"] = attrs.field(factory=dict)
    queue: list[tuple[int, int, Callable[[], None]]] = attrs.field(factory=list)
    serial: int = 0
    tokens: int = 0
    told: Callable[["Node", fx.Effect], None] = lambda node, effect: None

    def at(self, delay: int, action: Callable[[], None]) -> None:
        """Do something later."""
        self.serial += 1
        heappush(self.queue, (self.now + delay, self.serial, action))

    def send(self, sender: "Node", to: str, message: Message) -> None:
        """One message over the ordered link to `to`: a dead address refuses, what was on its way there is lost."""
        receiver = self.nodes.get(to)

        def arrive() -> None:
            if receiver is not None and self.nodes.get(to) is receiver:
                receiver.arrive(inputs.Arrived(message))
            elif receiver is None and self.nodes.get(sender.address) is sender:
                sender.arrive(inputs.Gone(to))

        self.at(LINK_NS, arrive)

    def run(self, span_ns: int) -> None:
        """Let time pass."""
        end = self.now + span_ns
        while True:
            awake = [node for node in self.nodes.values() if not node.frozen]
            wakes = [(due, node) for node in awake if (due := node.machine.next_timeout()) is not None]
            wake = min((due for due, _ in wakes), default=None)
            first = self.queue[0][0] if self.queue else None
            due = min((moment for moment in (wake, first) if moment is not None), default=None)
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            if first is not None and first <= self.now:
                heappop(self.queue)[2]()
            else:
                for moment, node in wakes:
                    if moment <= self.now:
                        node.feed(inputs.Tick())
        self.now = end

    def run_until(self, condition: Callable[[], bool], limit_ns: int = 60_000 * MILLISECOND) -> None:
        """Let time pass until something holds; fails the test when it never does."""
        end = self.now + limit_ns
        while not condition():
            assert self.now < end, "the world ran out of time"
            self.run(MILLISECOND)

    def crash(self, node: "Node") -> None:
        """Kill a node: what it has not synced is gone, its links close, its peers learn that nobody listens."""
        del self.nodes[node.address]
        node.stop()
        for other in list(self.nodes.values()):
            other.on_crash(node)


@attrs.define(eq=False)
class Node:
    """A driver of one machine."""

    world: World
    address: str
    machine: Any
    events: list[Event] = attrs.field(factory=list)
    sent: list[tuple[str, Message]] = attrs.field(factory=list)
    frozen: bool = False
    backlog: list[Any] = attrs.field(factory=list)

    def join(self) -> None:
        """Appear in the world and start."""
        self.world.nodes[self.address] = self
        self.feed(inputs.Start())

    def arrive(self, event: Any) -> None:
        """Something from outside: a frozen process reads it when it runs again."""
        if self.frozen:
            self.backlog.append(event)
        else:
            self.feed(event)

    def thaw(self) -> None:
        """A frozen process runs again and finds its clock, then its mail."""
        self.frozen = False
        backlog, self.backlog = self.backlog, []
        for event in (inputs.Tick(), *backlog):
            self.feed(event)

    def feed(self, event: Any) -> None:
        """One input, and what follows from it."""
        self.machine.receive(event, self.world.now)
        for effect in self.machine.take_effects():
            self.world.told(self, effect)
            self.perform(effect)
        self.machine.check_invariants()

    def perform(self, effect: fx.Effect) -> None:
        """What every node can do."""
        match effect:
            case fx.Send():
                self.sent.append((effect.to, effect.message))
                self.world.send(self, effect.to, effect.message)
            case fx.Notify():
                self.events.append(effect.event)
            case _:
                self.perform_own(effect)

    def perform_own(self, effect: fx.Effect) -> None:
        """What only this kind of node can do."""
        raise AssertionError(effect)

    def seen(self, kind: type[Any]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def stop(self) -> None:
        """The node crashed."""

    def on_crash(self, node: "Node") -> None:
        """Another node crashed: its socket refuses from now on."""
        self.arrive(inputs.Gone(node.address))


@attrs.define(eq=False)
class SourceNode(Node):
    """A source and its stream."""

    joined: list["Joiner"] = attrs.field(factory=list)
    numbers: list[int] = attrs.field(factory=list)

    @classmethod
    def create(cls, world: World, config: SourceConfig) -> "SourceNode":
        """A source that listens at its request address."""
        node = cls(world, config.reply_to, SourceEndpoint.create(config))
        node.join()
        return node

    def send(self, count: int, size: int = 100) -> None:
        """Send a run."""
        first = self.machine.window.next
        self.numbers += range(first, first + count)
        for joiner in self.joined:
            joiner.stream(self, first, count, size)
        self.feed(inputs.Sent(first, count, count * size))

    def perform_own(self, effect: fx.Effect) -> None:
        """Broadcast, resend, release."""
        match effect:
            case fx.Broadcast():
                for joiner in self.joined:
                    joiner.inform(effect.message)
            case fx.Resend():
                target = self.world.nodes.get(effect.to)
                if isinstance(target, Joiner):
                    count = effect.last - effect.first + 1
                    target.recover_run(effect.session, effect.session, effect.first, count, effect.proactive)
            case fx.Release():
                pass
            case _:
                raise AssertionError(effect)

    def admit(self, joiner: "Joiner") -> None:
        """Somebody joined the stream: greet with the SRI."""
        if joiner in self.joined:
            return
        self.joined.append(joiner)
        if self.machine.state is SourceState.ACTIVE:
            joiner.inform(self.machine.info())

    def on_crash(self, node: Node) -> None:
        """Its stream connection ends as well."""
        self.joined = [joiner for joiner in self.joined if joiner is not node]
        Node.on_crash(self, node)
        alive = [message for to, message in node.sent if to == self.address and isinstance(message, ReceiverAlive)]
        if alive:
            self.arrive(inputs.Departed(alive[-1].context))


@attrs.define(eq=False)
class Joiner(Node):
    """Whoever joins a stream: receivers and stores."""

    runs: dict[int, tuple[int, int, int]] = attrs.field(factory=dict)

    def stream(self, source: SourceNode, first: int, count: int, size: int) -> None:
        """A run on its way."""
        incarnation = source.machine.config.incarnation
        self.world.at(LINK_NS, lambda: self.take(incarnation, incarnation, first, count, size=size))

    def recover_run(self, session: int, incarnation: int, first: int, count: int, proactive: bool = False) -> None:
        """A retransmission on its way."""
        self.world.at(
            LINK_NS, lambda: self.take(session, incarnation, first, count, recovered=True, proactive=proactive)
        )

    def take(
        self,
        session: int,
        incarnation: int,
        first: int,
        count: int,
        *,
        size: int = SIZE,
        recovered: bool = False,
        proactive: bool = False,
    ) -> None:
        """A run arrived."""
        if self.world.nodes.get(self.address) is not self:
            return
        self.world.tokens += 1
        token = self.world.tokens
        self.runs[token] = (incarnation, first, count)
        wire = serial.wire(first)
        self.arrive(inputs.Data(session, incarnation, wire, count, size * count, recovered, token, proactive))

    def inform(self, info: Message) -> None:
        """An SRI on its way, behind the data."""

        def arrive() -> None:
            if self.world.nodes.get(self.address) is self:
                self.arrive(inputs.Arrived(info))

        self.world.at(LINK_NS, arrive)


@attrs.define(eq=False)
class ReceiverNode(Joiner):
    """A receiver whose application consumes at once unless told not to."""

    delivered: list[Content] = attrs.field(factory=list)
    recovered: int = 0
    consuming: bool = True
    reg_ids: dict[int, int] = attrs.field(factory=dict)
    wish: int | None = None
    asked: list[fx.AskLow] = attrs.field(factory=list)

    @classmethod
    def create(cls, world: World, config: ReceiverConfig, source: SourceNode, **more: Any) -> "ReceiverNode":
        """A receiver that joined the source's stream."""
        node = cls(world, config.reply_to, ReceiverSession.create(config), **more)
        node.join()
        source.admit(node)
        return node

    def perform_own(self, effect: fx.Effect) -> None:
        """Deliver, and answer the application's questions."""
        match effect:
            case fx.Deliver():
                incarnation, first, _ = self.runs[effect.token]
                assert (first + effect.skip - effect.first) % (1 << 32) == 0
                numbers = range(first + effect.skip, first + effect.skip + effect.count)
                self.delivered += [(incarnation, number) for number in numbers]
                self.recovered += effect.count if effect.recovered else 0
                if effect.done:
                    del self.runs[effect.token]
                if self.consuming:
                    self.feed(inputs.Consumed(effect.first, effect.first + effect.count - 1))
            case fx.Discard():
                del self.runs[effect.token]
            case fx.AskRegId():
                self.feed(inputs.RegIdChosen(effect.store_index, self.reg_ids.get(effect.store_index, 0)))
            case fx.AskLow():
                self.asked.append(effect)
                self.feed(inputs.LowChosen(effect.low if self.wish is None else self.wish))
            case _:
                raise AssertionError(effect)

    @property
    def numbers(self) -> list[int]:
        """The numbers delivered, in order."""
        return [number for _, number in self.delivered]
