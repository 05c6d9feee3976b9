"""A source context and some receivers on a network that loses, delays, reorders and repeats, in virtual time."""

import heapq
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import Deliver
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.inputs import CloseSession, DatagramsReceived, OpenSession, SessionDatagrams, Submit
from stablecast.transports.reliable.lbtrm import LbtrmReceiver, LbtrmSources
from stablecast.transports.reliable.lbtru import LbtruReceiver, LbtruSources
from stablecast.transports.reliable.settings import (
    LBTRM_RATES,
    LBTRM_RECEIVER,
    LBTRU_RATES,
    LBTRU_RECEIVER,
    RateSettings,
    ReceiverSettings,
    SourceSettings,
)
from stablecast.transports.wire import lbmc, lbtrm, lbtru
from tests.transports.reliable import invariants

MS = MILLISECOND
GROUP = "224.10.10.10:14400"
SOURCE = "10.0.0.1:14390"
SESSION_ID = 0xCAFE_0001
NAK_PORT = 14390
SESSION = 1
CHECKED = 16
"""Invariants are checked once in this many events."""


def block(topic: int, first: int, count: int, size: int = 20) -> bytes:
    """Return plain messages of a topic, back to back; each payload is its number."""
    return b"".join(
        lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, topic, serial.wire(number), (), number.to_bytes(size, "big")))
        for number in range(first, first + count)
    )


@attrs.define
class Faults:
    """Faults of the network, each kind in parts per thousand; delays in nanoseconds."""

    lost: int = 0
    repeated: int = 0
    late: int = 0
    delay_ns: int = MS
    late_ns: int = 30 * MS


@attrs.define
class Heap:
    """Future events by their instants."""

    now: int = 0
    order: int = 0
    events: list[tuple[int, int, Callable[[], None]]] = attrs.field(factory=list)

    def at(self, when: int, what: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.events, (when, self.order, what))

    def run(self, until: int) -> None:
        while self.events and self.events[0][0] <= until:
            self.now, _, what = heapq.heappop(self.events)
            what()
        self.now = until


class Party:
    def __init__(self, heap: Heap, machine: Any, perform: Callable[["Party", Any], None], address: str) -> None:
        self.heap, self.machine, self.perform, self.address = heap, machine, perform, address
        self.armed: int | None = None
        self.effects: list[tuple[int, Any]] = []
        self.arm()

    def feed(self, event: Any) -> None:
        self.machine.receive(event, self.heap.now)
        self.check()
        self.drain()

    def check(self) -> None:
        """Check the invariants occasionally, because they walk the whole window."""
        if self.heap.order % CHECKED == 0:
            invariants.check(self.machine)

    def drain(self) -> None:
        for effect in self.machine.take_effects():
            self.effects.append((self.heap.now, effect))
            self.perform(self, effect)
        self.arm()

    def arm(self) -> None:
        due = self.machine.next_timeout()
        if due is not None and (self.armed is None or due < self.armed):
            self.armed = due
            self.heap.at(due, lambda: self.wake(due))

    def wake(self, due: int) -> None:
        if self.armed != due:
            return
        self.armed = None
        wanted = self.machine.next_timeout()
        if wanted is not None and wanted <= self.heap.now:
            self.machine.handle_timeout(self.heap.now)
            self.check()
            after = self.machine.next_timeout()
            assert after is None or after > self.heap.now, "it asks for an instant that it has just worked through"
        self.drain()

    def told(self, kind: type) -> list[tuple[int, Any]]:
        return [(at, effect) for at, effect in self.effects if isinstance(effect, kind)]


class Order:
    """One topic at one receiver: the core's window puts messages in order and reports losses in their place."""

    def __init__(self, first: int) -> None:
        self.window = DeliveryWindow(proximity=1 << 30)
        self.window.begin(first, [])
        self.first = first
        self.delivered = RangeSet()
        self.lost = RangeSet()
        self.heard = RangeSet()

    def run(self, first: int, count: int) -> None:
        assert not self.heard.within(first, first + count), "a message came up twice"
        self.heard.add(first, first + count)
        self._do(lambda out: self.window.on_run(first, first + count, first, False, out))

    def lose(self, first: int, count: int) -> None:
        self.lost.add(first, first + count)
        self._do(lambda out: self.window.lose(first, first + count, out))

    def _do(self, what: Callable[[list[Any]], None]) -> None:
        out: list[Any] = []
        what(out)
        for effect in out:
            if isinstance(effect, Deliver):
                assert not self.delivered or effect.first > (self.delivered.last or 0)
                self.delivered.add(effect.first, effect.first + effect.count)


class Network:
    """One source session, `receivers` receivers; `kind` is "lbtrm" or "lbtru"."""

    def __init__(
        self,
        kind: str,
        receivers: int = 2,
        faults: Faults | None = None,
        seed: int = 1,
        source: SourceSettings | None = None,
        receiver: ReceiverSettings | None = None,
        rates: RateSettings | None = None,
        opened: bool = True,
    ) -> None:
        self.kind = kind
        self.heap = Heap()
        self.seeded = Seeded(seed)
        self.faults = faults or Faults()
        self.drop: Callable[[str, Any], bool] | None = None
        self.wire: list[tuple[int, str, Any]] = []
        self.orders: list[dict[int, Order]] = []
        self.numbers: dict[int, int] = defaultdict(int)
        self.waiting: list[Submit] = []
        multicast = kind == "lbtrm"
        default = LBTRM_RATES if multicast else LBTRU_RATES
        machine: Any = (LbtrmSources if multicast else LbtruSources)(rates or default)
        self.source = Party(self.heap, machine, self._from_source, SOURCE)
        settings = receiver or (LBTRM_RECEIVER if multicast else LBTRU_RECEIVER)
        address = GROUP if multicast else SOURCE
        if opened:
            self.source.feed(OpenSession(SESSION, address, SESSION_ID, NAK_PORT, source or SourceSettings()))
        made = LbtrmReceiver if multicast else LbtruReceiver
        self.receivers: list[Party] = []
        for place in range(receivers):
            self.orders.append({})
            one: Any = made(SOURCE, SESSION_ID, seed * 100 + place, 0, settings)
            self.receivers.append(Party(self.heap, one, self._from_receiver, f"10.0.1.{place}:14360"))

    @property
    def now(self) -> int:
        return self.heap.now

    def run(self, until: int) -> None:
        self.heap.run(until)

    def send(self, topic: int, count: int = 1, size: int = 20, mark: BatchMark = BatchMark.NONE) -> None:
        """Submit messages. Those that the rate limit refuses wait for `Unblocked`."""
        first = self.numbers[topic]
        self.numbers[topic] += count
        self.waiting.append(Submit(SESSION, block(topic, first, count, size), mark))
        self._submit()

    def send_at(self, when: int, topic: int, count: int = 1, size: int = 20) -> None:
        self.heap.at(when, lambda: self.send(topic, count, size))

    def close(self) -> None:
        self.source.feed(CloseSession(SESSION))

    def packets(self, kind: type, sender: str = "") -> list[tuple[int, Any]]:
        """Return the packets of a kind that left, with their instants (ns), without repeats by the network."""
        return [(at, packet) for at, who, packet in self.wire if isinstance(packet, kind) and sender in ("", who)]

    def _submit(self) -> None:
        while self.waiting and not self.source.machine.blocked:
            self.source.feed(self.waiting.pop(0))

    def _decode(self, octets: bytes) -> Any:
        return lbtrm.decode(octets) if self.kind == "lbtrm" else lbtru.decode(octets)

    def _from_source(self, party: Party, effect: Any) -> None:
        match effect:
            case fx.SendDatagrams(_, to, datagrams):
                for octets in datagrams:
                    packet = self._decode(octets)
                    self.wire.append((self.now, "source", packet))
                    for receiver in self.receivers:
                        if to in (GROUP, receiver.address):
                            self._carry(octets, packet, receiver, lambda one, who: who.feed(SessionDatagrams((one,))))
            case fx.Unblocked():
                self.heap.at(self.now, self._submit)

    def _from_receiver(self, party: Party, effect: Any) -> None:
        topics = self.orders[self.receivers.index(party)] if party in self.receivers else {}
        match effect:
            case fx.SendDatagrams(_, to, datagrams):
                assert to == SOURCE
                for octets in datagrams:
                    packet = self._decode(octets)
                    self.wire.append((self.now, party.address, packet))
                    self._carry(
                        octets,
                        packet,
                        self.source,
                        lambda one, who: who.feed(DatagramsReceived(SESSION, ((one, party.address),))),
                    )
            case fx.Received(items):
                for run in items:
                    if isinstance(run, Run):
                        topics.setdefault(run.topic_index, Order(run.first)).run(run.first, run.count)
            case fx.TopicLost(topic, first, count):
                topics[topic].lose(first, count)

    def _carry(self, octets: bytes, packet: Any, to: Party, arrive: Callable[[bytes, Party], None]) -> None:
        if self.drop is not None and self.drop(to.address, packet):
            return
        faults = self.faults
        copies = 2 if self._chance(faults.repeated) else 1
        for _ in range(copies):
            if not self._chance(faults.lost):
                late = self.seeded.below(faults.late_ns) if self._chance(faults.late) else 0
                if to in self.receivers or to is self.source:
                    self.heap.at(self.now + faults.delay_ns + late, lambda: self._arrive(octets, to, arrive))

    def _arrive(self, octets: bytes, to: Party, arrive: Callable[[bytes, Party], None]) -> None:
        if to is self.source and SESSION not in to.machine.sessions:
            return
        arrive(octets, to)

    def _chance(self, permille: int) -> bool:
        return permille > 0 and self.seeded.below(1000) < permille
