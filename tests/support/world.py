"""A small deterministic world for endpoint tests: virtual time, ordered links, disks that lose what is not synced.

Messages travel as core messages (no bytes) with a fixed delay per link, in order, like TCP. Crashes close links:
whoever sends to a dead address learns `Gone`. It drives the unmodified endpoints by the contract of `stablecast.core`.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import attrs

from stablecast.core import effects as fx
from stablecast.core import inputs
from stablecast.core.events import Event
from stablecast.core.messages import Message, SourceInfo, StableAck
from stablecast.core.receiver import ReceiverSession
from stablecast.core.settings import ReceiverConfig, SourceConfig, StoreConfig
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.units import MILLISECOND
from tests.support.disk import change, replay

LINK_NS = MILLISECOND // 10
SYNC_NS = MILLISECOND

Content = tuple[int, int]
"""What a message is in this world: (incarnation, number). Payload tests compare these."""


@attrs.define
class World:
    """Everybody, by address; `now` in ns."""

    now: int = 0
    nodes: dict[str, "Node"] = attrs.field(factory=dict)
    queue: list[tuple[int, int, Callable[[], None]]] = attrs.field(factory=list)
    serial: int = 0
    tokens: int = 0

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
            joiner.stream(self, first, count, False)
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
                    target.recover_run(effect.session, effect.session, effect.first, effect.last - effect.first + 1)
            case fx.Release():
                pass
            case _:
                raise AssertionError(effect)

    def admit(self, joiner: "Joiner") -> None:
        """Somebody joined the stream: greet with the SRI."""
        if joiner in self.joined:
            return
        self.joined.append(joiner)
        if self.machine.can_send:
            joiner.inform(self.machine.info())

    def on_crash(self, node: Node) -> None:
        """Its stream connection ends as well."""
        self.joined = [joiner for joiner in self.joined if joiner is not node]
        Node.on_crash(self, node)


@attrs.define(eq=False)
class Joiner(Node):
    """Whoever joins a stream: receivers and stores."""

    runs: dict[int, tuple[int, int, int]] = attrs.field(factory=dict)

    def stream(self, source: SourceNode, first: int, count: int, recovered: bool) -> None:
        """A run on its way."""
        incarnation = source.machine.config.incarnation
        self.world.at(LINK_NS, lambda: self.take(incarnation, incarnation, first, count, recovered))

    def recover_run(self, session: int, incarnation: int, first: int, count: int) -> None:
        """A retransmission on its way."""
        self.world.at(LINK_NS, lambda: self.take(session, incarnation, first, count, True))

    def take(self, session: int, incarnation: int, first: int, count: int, recovered: bool) -> None:
        """A run arrived."""
        if self.world.nodes.get(self.address) is not self:
            return
        self.world.tokens += 1
        token = self.world.tokens
        self.runs[token] = (incarnation, first, count)
        self.arrive(inputs.Data(session, incarnation, first % (1 << 32), count, 100 * count, recovered, token))

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


@attrs.define(eq=False)
class StoreNode(Joiner):
    """A store and its disk. `disk` is what survives a crash: records in the order written.

    `contents` is what can be read back, `durable` the part of it that is synced: incarnations by (RegID, number).
    """

    disk: list[fx.Effect] = attrs.field(factory=list)
    contents: dict[tuple[int, int], int] = attrs.field(factory=dict)
    durable: dict[tuple[int, int], int] = attrs.field(factory=dict)
    unsynced: deque[fx.Effect] = attrs.field(factory=deque)
    syncing: bool = False

    @classmethod
    def create(cls, world: World, config: StoreConfig, disk: list[fx.Effect] | None = None) -> "StoreNode":
        """A store, with the disk that an earlier one left."""
        node = cls(world, config.address, StoreEndpoint.create(config))
        if disk:
            node.disk = list(disk)
            for record in disk:
                change(node.contents, record)
                change(node.durable, record)
            node.machine.recover(*replay(disk), {}, world.now)
        node.join()
        return node

    def perform(self, effect: fx.Effect) -> None:
        """Whatever is acknowledged must be synced."""
        match effect:
            case fx.Send(message=StableAck() as ack):
                reg_id = self.machine.streams[ack.incarnation]
                for number in range(ack.first, ack.last + 1):
                    assert self.durable.get((reg_id, number)) == ack.incarnation, f"{number} acknowledged, not synced"
        Node.perform(self, effect)

    def perform_own(self, effect: fx.Effect) -> None:
        """Write, read back, join."""
        match effect:
            case fx.PersistMessages():
                assert self.runs[effect.token][0] == effect.incarnation
                if effect.done:
                    del self.runs[effect.token]
                self.write(effect)
            case fx.PersistClient() | fx.Cut() | fx.Forget():
                self.write(effect)
            case fx.Discard():
                del self.runs[effect.token]
            case fx.SendStored():
                target = self.world.nodes.get(effect.to)
                if isinstance(target, Joiner):
                    for number in range(effect.first, effect.last + 1):
                        incarnation = self.contents[effect.source_reg_id, number]
                        target.recover_run(effect.session, incarnation, number, 1)
            case fx.Join():
                for node in list(self.world.nodes.values()):
                    if isinstance(node, SourceNode) and node.machine.config.incarnation == effect.incarnation:
                        self.world.at(LINK_NS, lambda node=node: node.admit(self))  # type: ignore[misc]
            case fx.Leave():
                for node in list(self.world.nodes.values()):
                    if isinstance(node, SourceNode) and node.machine.config.incarnation == effect.incarnation:
                        node.joined = [joiner for joiner in node.joined if joiner is not self]
            case _:
                raise AssertionError(effect)

    def write(self, effect: fx.Effect) -> None:
        """Into the cache; a sync takes a while and covers what was written before it began."""
        change(self.contents, effect)
        self.unsynced.append(effect)
        if not self.syncing:
            self.sync()

    def sync(self) -> None:
        """Begin a sync."""
        self.syncing = True
        batch = list(self.unsynced)

        def done() -> None:
            if self.world.nodes.get(self.address) is not self:
                return
            self.syncing = False
            for effect in batch:
                self.unsynced.popleft()
                self.disk.append(effect)
                change(self.durable, effect)
            self.arrive(inputs.Persisted(batch[-1].ticket))  # type: ignore[union-attr]
            if self.unsynced and not self.syncing:
                self.sync()

        self.world.at(SYNC_NS, done)


__all__ = ["ReceiverNode", "SourceInfo", "SourceNode", "StoreNode", "World"]
