"""A deterministic world for endpoint tests: virtual time, ordered links, and disks that lose unsynced writes.

The world drives the unmodified endpoints by the contract of `stablecast.core`. Messages travel as core messages, not as
bytes, with a fixed delay and in order, as over TCP. A crash closes the links of a node: senders to it receive `Gone`.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import inputs
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.messages import Message, ReceiverAlive, Role
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.live_trace import LiveTrace
from stablecast.store.proxy import proxy_config
from tests.support.disk import SIZE, change, replay, standing
from tests.support.invariants import check_invariants

LINK_NS = MILLISECOND // 10
Content = tuple[int, int]
"""A message of this world: (incarnation, number). Tests compare these instead of payloads."""

SYNC_NS = MILLISECOND

ROLES = {SourceEndpoint: Role.SOURCE, ReceiverSession: Role.RECEIVER, StoreEndpoint: Role.STORE}

PROXY_LIFE = 1 << 40
"""Incarnations of proxies are above this number."""


@attrs.define
class EndpointWorld:
    """The nodes by address and the virtual time `now`, in ns. `observe` is called before each effect is performed."""

    now: int = 0
    nodes: dict[str, "Node"] = attrs.field(factory=dict)
    queue: list[tuple[int, int, Callable[[], None]]] = attrs.field(factory=list)
    serial: int = 0
    tokens: int = 0
    observe: Callable[["Node", fx.Effect], None] = lambda node, effect: None

    def at(self, delay: int, action: Callable[[], None]) -> None:
        """Call `action` after `delay` ns."""
        self.serial += 1
        heappush(self.queue, (self.now + delay, self.serial, action))

    def send(self, sender: "Node", to: str, message: Message) -> None:
        """Send a message over the ordered link to `to`. A dead address refuses it; a crash loses it on its way."""
        receiver = self.nodes.get(to)

        def arrive() -> None:
            if receiver is not None and self.nodes.get(to) is receiver:
                receiver.arrive(inputs.Arrived(message))
            elif receiver is None and self.nodes.get(sender.address) is sender:
                sender.arrive(inputs.Gone(to))

        self.at(LINK_NS, arrive)

    def run(self, span_ns: int) -> None:
        """Advance the time by `span_ns`."""
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
        """Advance the time until the condition holds. Raises AssertionError after `limit_ns`."""
        end = self.now + limit_ns
        while not condition():
            assert self.now < end, "the world ran out of time"
            self.run(MILLISECOND)

    def crash(self, node: "Node") -> None:
        """Kill a node: its unsynced writes are lost, its links close, and its peers receive `Gone`."""
        del self.nodes[node.address]
        node.stop()
        for other in list(self.nodes.values()):
            other.on_crash(node)


def _report(rule: str, text: str) -> None:
    raise AssertionError(f"{rule}: {text}")


@attrs.define(eq=False)
class Node:
    """The driver of one machine. A `frozen` node keeps its inputs in `backlog`."""

    world: EndpointWorld
    address: str
    machine: Any
    events: list[Event] = attrs.field(factory=list)
    sent: list[tuple[str, Message]] = attrs.field(factory=list)
    frozen: bool = False
    backlog: list[Any] = attrs.field(factory=list)
    judge: LiveTrace | None = None

    def join(self) -> None:
        """Enter the world and start the machine, which the rules of traces judge from now on."""
        self.world.nodes[self.address] = self
        if (role := ROLES.get(type(self.machine))) is not None:  # `verify` judges a machine that is traced.
            self.judge = LiveTrace(role, self.address, self.machine, _report)
        self.feed(inputs.Start())

    def arrive(self, event: Any) -> None:
        """Feed an input from outside. A frozen process reads it when it runs again."""
        if self.frozen:
            self.backlog.append(event)
        else:
            self.feed(event)

    def thaw(self) -> None:
        """Let a frozen process run again: it reads its clock first, then its backlog."""
        self.frozen = False
        backlog, self.backlog = self.backlog, []
        for event in (inputs.Tick(), *backlog):
            self.feed(event)

    def feed(self, event: Any) -> None:
        """Feed one input to the machine and perform the effects."""
        self.machine.receive(event, self.world.now)
        effects = self.machine.take_effects()
        if self.judge is not None:
            self.judge.record(event, self.world.now, effects)
        for effect in effects:
            self.world.observe(self, effect)
            self.perform(effect)
        check_invariants(self.machine)

    def perform(self, effect: fx.Effect) -> None:
        """Perform an effect that every kind of node knows."""
        match effect:
            case fx.Send():
                self.sent.append((effect.to, effect.message))
                self.world.send(self, effect.to, effect.message)
            case fx.Notify():
                self.events.append(effect.event)
            case _:
                self.perform_own(effect)

    def perform_own(self, effect: fx.Effect) -> None:
        """Perform an effect that only this kind of node knows."""
        raise AssertionError(effect)

    def seen(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def stop(self) -> None:
        """Clean up after the node crashed."""

    def on_crash(self, node: "Node") -> None:
        """Notice that another node crashed: its socket refuses connections from now on."""
        self.arrive(inputs.Gone(node.address))


@attrs.define(eq=False)
class SourceNode(Node):
    """A source, and the nodes that joined its stream."""

    joined: list["Joiner"] = attrs.field(factory=list)
    numbers: list[int] = attrs.field(factory=list)

    @classmethod
    def create(cls, world: EndpointWorld, config: SourceConfig) -> "SourceNode":
        """Start a source that listens at its request address."""
        node = cls(world, config.reply_to, SourceEndpoint.create(config))
        node.join()
        return node

    def send(self, count: int, size: int = 100) -> None:
        """Send a run of `count` messages of `size` bytes each."""
        first = self.machine.window.next
        self.numbers += range(first, first + count)
        for joiner in self.joined:
            joiner.stream(self, first, count, size)
        self.feed(inputs.Sent(first, count, count * size))

    def perform_own(self, effect: fx.Effect) -> None:
        """Perform a broadcast, a retransmission or a release."""
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
        """Add a node to the stream and send it the SRI."""
        if joiner in self.joined:
            return
        self.joined.append(joiner)
        if self.machine.state is SourceState.ACTIVE:
            joiner.inform(self.machine.info())

    def on_crash(self, node: Node) -> None:
        """Close the stream connection of the crashed node as well."""
        self.joined = [joiner for joiner in self.joined if joiner is not node]
        Node.on_crash(self, node)
        alive = [message for to, message in node.sent if to == self.address and isinstance(message, ReceiverAlive)]
        if alive:
            self.arrive(inputs.Departed(alive[-1].context))


@attrs.define(eq=False)
class Joiner(Node):
    """A node that joins streams: a receiver or a store. `runs` are the unread runs by token."""

    runs: dict[int, tuple[int, int, int]] = attrs.field(factory=dict)

    def stream(self, source: SourceNode, first: int, count: int, size: int) -> None:
        """Put a run of the stream on its way to this node."""
        incarnation = source.machine.config.incarnation
        self.world.at(LINK_NS, lambda: self.arrive_run(incarnation, incarnation, first, count, size=size))

    def recover_run(self, session: int, incarnation: int, first: int, count: int, proactive: bool = False) -> None:
        """Put a retransmission on its way to this node."""
        self.world.at(
            LINK_NS, lambda: self.arrive_run(session, incarnation, first, count, recovered=True, proactive=proactive)
        )

    def arrive_run(
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
        """Feed a run that arrived, under a new token."""
        if self.world.nodes.get(self.address) is not self:
            return
        self.world.tokens += 1
        token = self.world.tokens
        self.runs[token] = (incarnation, first, count)
        wire = serial.wire(first)
        self.arrive(inputs.Data(session, incarnation, wire, count, size * count, recovered, token, proactive))

    def inform(self, info: Message) -> None:
        """Put an SRI on its way to this node, after the data."""

        def arrive() -> None:
            if self.world.nodes.get(self.address) is self:
                self.arrive(inputs.Arrived(info))

        self.world.at(LINK_NS, arrive)


@attrs.define(eq=False)
class ReceiverNode(Joiner):
    """A receiver whose application consumes at once unless `consuming` is False."""

    delivered: list[Content] = attrs.field(factory=list)
    recovered: int = 0
    consuming: bool = True
    reg_ids: dict[int, int] = attrs.field(factory=dict)
    wish: int | None = None
    asked: list[fx.AskLow] = attrs.field(factory=list)

    @classmethod
    def create(cls, world: EndpointWorld, config: ReceiverConfig, source: SourceNode, **more: Any) -> "ReceiverNode":
        """Start a receiver and join the source's stream."""
        node = cls(world, config.reply_to, ReceiverSession.create(config), **more)
        node.join()
        source.admit(node)
        return node

    def perform_own(self, effect: fx.Effect) -> None:
        """Deliver messages, and answer in the name of the application."""
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
        """The delivered sequence numbers, in order of delivery."""
        return [number for _, number in self.delivered]


@attrs.define(eq=False)
class StoreNode(Joiner):
    """A store and its disk.

    `disk` holds the records that survive a crash, in the order in which they were written. `contents`, `durable` and
    `memory` are incarnations by (RegID, number): the readable messages on disk, the synced ones, and those in memory.
    `proxies` are the proxy sources by RegID.
    """

    disk: list[fx.Effect] = attrs.field(factory=list)
    contents: dict[tuple[int, int], int] = attrs.field(factory=dict)
    durable: dict[tuple[int, int], int] = attrs.field(factory=dict)
    memory: dict[tuple[int, int], int] = attrs.field(factory=dict)
    proxies: dict[int, SourceNode] = attrs.field(factory=dict)
    unsynced: deque[fx.StoreEffect] = attrs.field(factory=deque)
    syncing: bool = False

    @classmethod
    def create(cls, world: EndpointWorld, config: StoreConfig, disk: list[fx.Effect] | None = None) -> "StoreNode":
        """Start a store with the disk of an earlier run. An empty list is a lost disk, None the disk of a new store."""
        node = cls(world, config.address, StoreEndpoint.create(config))
        if disk is not None:
            node.disk = list(disk)
            for record in disk:
                change(node.contents, record)
                change(node.durable, record)
            node.machine.recover(*replay(disk), world.now, memory=bool(disk), standing=standing(disk))
        node.join()
        return node

    def perform_own(self, effect: fx.Effect) -> None:
        """Perform a write, a read or a join."""
        match effect:
            case fx.PersistMessages():
                self.hold(effect)
                self.write(effect)
            case fx.CacheMessages():
                self.hold(effect)
            case fx.PersistCached():
                self.write_held(effect)
            case fx.Uncache():
                change(self.memory, fx.Reclaim(0, effect.source_reg_id, effect.number))
            case fx.PersistClient() | fx.Cut() | fx.Reclaim() | fx.Forget():
                change(self.memory, effect)
                self.write(effect)
            case fx.PersistMemory():
                self.write(effect)
            case fx.Discard():
                del self.runs[effect.token]
            case fx.SendStored():
                self.send_stored(effect)
            case fx.StartProxy():
                self.start_proxy(effect)
            case fx.StopProxy():
                self.world.crash(self.proxies.pop(effect.source_reg_id))
            case fx.Join():
                for source in self.sources(effect.incarnation):
                    self.world.at(LINK_NS, lambda source=source: source.admit(self))  # type: ignore[misc]
            case fx.Leave():
                for source in self.sources(effect.incarnation):
                    source.joined = [joiner for joiner in source.joined if joiner is not self]
            case _:
                raise AssertionError(effect)

    def hold(self, effect: fx.PersistMessages | fx.CacheMessages) -> None:
        """Keep a run in memory."""
        assert self.runs[effect.token][0] == effect.incarnation
        if effect.done:
            del self.runs[effect.token]
        for number in range(effect.first, effect.first + effect.count):
            self.memory[effect.source_reg_id, number] = effect.incarnation

    def write_held(self, effect: fx.PersistCached) -> None:
        """Write messages from memory, with the same records as messages that are written at once."""
        for number in range(effect.first, effect.last + 1):
            incarnation = self.memory[effect.source_reg_id, number]
            self.write(fx.PersistMessages(effect.ticket, effect.source_reg_id, incarnation, 0, 0, 1, number, done=True))

    def sources(self, incarnation: int) -> list[SourceNode]:
        """Return the running sources of this life: at most one."""
        nodes = [node for node in self.world.nodes.values() if isinstance(node, SourceNode)]
        return [node for node in nodes if node.machine.config.incarnation == incarnation]

    def send_stored(self, effect: fx.SendStored) -> None:
        """Send messages from memory, or else from the disk."""
        target = self.world.nodes.get(effect.to)
        if isinstance(target, Joiner):
            for number in range(effect.first, effect.last + 1):
                key = effect.source_reg_id, number
                incarnation = self.memory[key] if key in self.memory else self.contents[key]
                target.recover_run(effect.session, incarnation, number, 1)

    def start_proxy(self, effect: fx.StartProxy) -> None:
        self.world.serial += 1
        address = f"{self.address}/proxy{effect.source_reg_id}"
        life = attrs.evolve(
            proxy_config(effect), incarnation=PROXY_LIFE + self.world.serial, reply_to=address, transport=address
        )
        self.proxies[effect.source_reg_id] = SourceNode.create(self.world, life)

    def stop(self) -> None:
        """End the proxies together with their store."""
        for proxy in self.proxies.values():
            self.world.crash(proxy)

    def write(self, effect: fx.StoreEffect) -> None:
        """Write to the cache of the disk. A sync takes `SYNC_NS` and covers the writes before its beginning."""
        change(self.contents, effect)
        self.unsynced.append(effect)
        if not self.syncing:
            self.sync()

    def sync(self) -> None:
        """Begin a sync of all unsynced writes."""
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
