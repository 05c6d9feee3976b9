"""Simulate a source's process: the source endpoint driven as the client does, and an application that sends."""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import assert_never

from stablecast.client.retained_copies import Retained
from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol.settings import FlightBehavior, SourceConfig, StoreBehavior
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.trace_recorder import Recorder
from stablecast.lab.sim.network import Connection, VirtualNetwork
from stablecast.lab.sim.process import NO_MESSAGE, Item, VirtualDriver, VirtualProcess, encode, serve
from stablecast.lab.sim.setup import STORES
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.lab.sim.virtual_time import VirtualClock
from stablecast.runtime.driver import Driven
from stablecast.transports import codec
from stablecast.transports.wire.headers import Fragment
from stablecast.transports.wire.lbmc import DATA_HEADER, Message, MessageKind
from stablecast.transports.wire.lbmc import encode as encode_message

PAYLOAD = struct.Struct(">QI")
"""Sender's incarnation and sequence number; checkers compare them with what is delivered."""

FLUSH_NS = MILLISECOND
"""Longest time in ns that messages stay buffered before the loop's turn ends."""

CANCEL_SHARE = 0.2
"""Share of waits for credit that a fickle application cancels."""

HESITATE_NS = 100 * MILLISECOND
"""Longest delay in ns of an application that hesitates before it starts, or before it chooses a first number."""


def portions(
    first: int, stop: int, large: list[tuple[int, int]]
) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """Yield the ranges that leave as one block.

    A block holds plain messages, or adjacent large ones with their first and last numbers.

    >>> list(portions(0, 9, [(2, 3), (4, 6)]))
    [(0, 2, ()), (2, 7, ((2, 3), (4, 6))), (7, 9, ())]
    """
    together: list[tuple[int, int]] = []
    for low, high in [*large, (stop, stop)]:
        if together and together[-1][1] + 1 == low < stop:
            together.append((low, high))
            continue
        if together:
            yield together[0][0], together[-1][1] + 1, tuple(together)
            first = together[-1][1] + 1
        if first < low:
            yield first, low, ()
        together = [(low, high)]


def plain(topic_index: int, life: int, first: int, stop: int) -> bytes:
    """Return the block of messages that are not fragmented."""
    pack, size = DATA_HEADER.pack, DATA_HEADER.size + PAYLOAD.size
    parts = []
    for number in range(first, stop):
        wire = serial.wire(number)
        parts.append(pack(0, 0, size, topic_index, wire) + PAYLOAD.pack(life, wire))
    return b"".join(parts)


def pieces(topic_index: int, life: int, large: tuple[tuple[int, int], ...]) -> bytes:
    """Return the block of large messages. Each fragment carries what a plain message would."""
    size = PAYLOAD.size
    return b"".join(
        encode_message(
            Message(
                MessageKind.DATA,
                topic_index,
                serial.wire(number),
                (Fragment(first_sqn=serial.wire(first), offset=size * place, len=size * (last + 1 - first)),),
                PAYLOAD.pack(life, serial.wire(number)),
            )
        )
        for first, last in large
        for place, number in enumerate(range(first, last + 1))
    )


class SourceProcess(VirtualProcess):
    """Run one life of the source."""

    def __init__(
        self,
        network: VirtualNetwork,
        name: str,
        config: SourceConfig,
        clock: VirtualClock,
        checkers: Checkers,
        on_over: Callable[["SourceProcess"], None],
    ) -> None:
        """Prepare the process; `on_over` is called when another life replaces it."""
        super().__init__(network, name, config.reply_to.partition(":")[0], clock)
        self.config = config
        self.machine = SourceEndpoint.create(config)
        self.wanted = 0
        self.left = False
        self.hesitates = False
        self.cancels = False
        self.pieces = 1
        self._fickle = Random(config.incarnation)  # noqa: S311  # not a secret
        self.known_at: dict[int, int] = {}
        self._checkers = checkers
        self._on_over = on_over
        self._turns = config.behavior is StoreBehavior.RR
        self._session_id, self._topic_index = codec.split(config.incarnation)
        self._subscribers: list[Connection] = []
        self._retained = Retained(config.incarnation)
        self._blocked = False
        self._complete = False
        self._next = 0
        self._buffered = 0
        self._large: list[tuple[int, int]] = []
        self._size = 1
        self._planned = False

    def start(self, recorder: Recorder | None) -> None:
        """Listen and register, after a delay if the application hesitates."""
        driven: Driven[inputs.SourceInput, fx.SourceEffect] = Driven(self.machine, recorder)
        self._driver = VirtualDriver(self, driven, self._perform)
        self.listen(self.config.reply_to, serve(self._on_items))
        self.listen(self.config.transport, self._admit)
        if self.hesitates:
            delay = int(self.world.rng.random() * HESITATE_NS)
            self.world.after(delay, lambda: self.deliver(lambda: self._driver.feed(inputs.Start())))
        else:
            self._driver.feed(inputs.Start())

    def want(self, count: int) -> None:
        """Send `count` messages as soon as credit permits."""
        self.wanted += count
        self.deliver(self._send)

    def locate(self, name: str, address: str) -> None:
        """Pass the address of a named store to the machine."""
        self._driver.feed(inputs.Located(name, address))

    def withdraw(self) -> None:
        """Deregister, and send nothing more."""
        self.wanted = self._buffered = 0
        self._large.clear()
        self._driver.feed(inputs.Withdraw())

    @property
    def idle(self) -> bool:
        """True if every wanted message was sent and is settled."""
        return self.calm and not self.machine.in_flight_messages

    @property
    def calm(self) -> bool:
        """True if every wanted message was sent."""
        return not self.wanted and not self._buffered and self.machine.can_send

    def registrations(self) -> Iterable[RegistrationStatus]:
        """Return the registrations with every store."""
        return self.machine.status.registrations.values()

    def broken(self, event: inputs.Reset | inputs.Gone) -> None:
        """Pass the event to the machine."""
        self._driver.feed(event)

    # Sending.

    def cut(self, most: int) -> None:
        """Fragment messages into at most `most` pieces, as far as they fit the flight."""
        config = self.config
        limits = (most, config.flight_bytes // PAYLOAD.size or most)
        self.pieces = min(limits) if config.flight_behavior is FlightBehavior.BLOCK else most

    def _send(self) -> None:
        """Take numbers while there is credit. The messages leave with the next flush."""
        if not self.machine.can_send:
            return
        if self.pieces > 1:
            self._send_large()
            return
        count = min(self.wanted, *self._credit())
        if count < 1:
            self._block()
            return
        self._take(count)
        self._soon()

    def _send_large(self) -> None:
        """Take numbers for whole messages: a large one leaves only when there is credit for all its bytes."""
        before = self.wanted
        while self.wanted and self._fits(min(self._size, self.wanted)):
            size = min(self._size, self.wanted)
            if size > 1:
                self._large.append((self._next, self._next + size - 1))
            self._take(size)
            self._size = self.world.rng.randint(1, self.pieces)
        if self.wanted < before:
            self._soon()
        self._block(min(self._size, self.wanted))

    def _take(self, count: int) -> None:
        self.wanted -= count
        self._next += count
        self._buffered += count

    def _fits(self, pieces: int) -> bool:
        messages, room = self._credit()
        return messages >= 1 and room >= pieces

    def _credit(self) -> tuple[int, int]:
        """Return how many messages, and how many fragments, may be sent; without limit if sends only notify."""
        if self.config.flight_behavior is FlightBehavior.NOTIFY:
            return (self.wanted, self.wanted)
        credit, size = self.machine.credit_messages, self.machine.credit_bytes
        fragments = self.wanted if size is None else size // PAYLOAD.size - self._buffered
        return (credit - self._buffered + sum(last - first for first, last in self._large), fragments)

    def _block(self, pieces: int = 1) -> None:
        """Ask the machine for a wakeup when there is credit for a message."""
        if self.wanted and not self._blocked:
            if self.cancels and self._fickle.random() < CANCEL_SHARE:  # The task that waits for credit is cancelled.
                self.wanted = 0
                return
            self._blocked = True
            self._driver.feed(inputs.Blocked(pieces * PAYLOAD.size))

    def _soon(self) -> None:
        if not self._planned:
            self._planned = True
            delay = int(self.world.rng.random() * FLUSH_NS)
            self.world.after(delay, lambda: self.deliver(self._turn))

    def _turn(self) -> None:
        self._planned = False
        self._flush()
        self._send()

    def _flush(self) -> None:
        count, self._buffered = self._buffered, 0
        if not count:
            return
        large, self._large = self._large, []
        for first, stop, cut in portions(self._next - count, self._next, large):
            self._emit(first, stop, cut)

    def _emit(self, first: int, stop: int, large: tuple[tuple[int, int], ...]) -> None:
        life, size = self.config.incarnation, (stop - first) * PAYLOAD.size
        block = pieces(self._topic_index, life, large) if large else plain(self._topic_index, life, first, stop)
        self._broadcast(block)
        self._retained.add(first, stop, block, size)
        flight = (self.config.flight_messages, self.config.flight_bytes) if self.config.stores else (0, 0)
        self._checkers.on_sent(life, first, stop, flight, large)
        self._driver.feed(inputs.Sent(first, stop - first, size, large))

    def _broadcast(self, data: bytes) -> None:
        for connection in self._subscribers:
            connection.write(self, data)

    # Inputs.

    def _admit(self, connection: Connection) -> None:
        """Greet a new subscriber of the stream."""
        connection.on_lost[False] = lambda: self._subscribers.remove(connection)
        if connection.broken:
            return
        self._flush()
        hello = codec.greeting(self._session_id)
        connection.write(self, hello + encode(self.machine.info()) if self.machine.can_send else hello)
        self._subscribers.append(connection)

    def _on_items(self, items: Sequence[Item]) -> None:
        for item in items:
            assert not isinstance(item, NO_MESSAGE)
            if item.incarnation == self.config.incarnation:
                self._driver.feed(inputs.Arrived(item))

    # Effects.

    def _perform(self, effect: fx.SourceEffect) -> None:
        match effect:
            case fx.Send():
                self.pool.send(effect.to, encode(effect.message))
            case fx.Broadcast():
                self._broadcast(encode(effect.message))
            case fx.Release():
                self._checkers.on_release(self.config.incarnation, effect.number)
                self._retained.release(effect.number)
            case fx.Resend():
                again = self._retained.again(effect)
                if again:
                    self.pool.send(effect.to, again)
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _on_notify(self, event: events.Event) -> None:
        match event:
            case events.RegistrationSuccess():
                self.known_at[event.store_index] = event.reg_id
                if self._turns:
                    self._checkers.facts.on_turn(STORES[event.store_index])
                self._checkers.on_registered(self, event.store_index, event.reg_id)
            case events.RegistrationComplete():
                if not self._complete:
                    self._next = event.number
                    self._checkers.on_life(self.config.incarnation, event.number)
                self._complete = True
            case events.Stable() if event.flags & events.StableFlag.STABLE:
                active = [STORES[held.request.store_index] for held in self.registrations() if held.active]
                self._checkers.on_stable(self.config.incarnation, event.first, event.last + 1, active)
            case events.Reclaimed() if event.forced:
                self._checkers.on_forced(self.config.incarnation, event.first, event.last + 1)
            case events.QuorumLost():
                self._flush()
            case events.Overtaken():
                self._on_over(self)
            case events.Wakeup():
                self._blocked = False
            case events.DeregistrationComplete():
                self.left = True
            case _:
                self._checkers.on_oddity(event)
        self._soon()
