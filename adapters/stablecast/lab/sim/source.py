"""Simulate a source's process: the source endpoint driven as the client does, and an application that sends."""

import struct
from collections.abc import Callable, Iterable, Sequence
from random import Random

from stablecast.client.observer import Observer
from stablecast.client.sender import Sender
from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.settings import FlightBehavior, SourceConfig, StoreBehavior
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.source import SourceEndpoint
from stablecast.core.source.outbox import Block, Extra, Outbox
from stablecast.evidence.trace.live_trace import LiveTrace
from stablecast.lab.sim.network import Connection, VirtualNetwork
from stablecast.lab.sim.process import NO_MESSAGE, Item, VirtualDriver, VirtualProcess, encode, serve
from stablecast.lab.sim.setup import STORES
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.lab.sim.virtual_time import VirtualClock
from stablecast.runtime.driver import Driven
from stablecast.transports.wire.headers import Fragment
from stablecast.transports.wire.lbmc import Message, MessageKind
from stablecast.transports.wire.lbmc import encode as encode_message

PAYLOAD = struct.Struct(">QI")
"""Sender's incarnation and sequence number; checkers compare them with what is delivered."""

FLUSH_NS = MILLISECOND
"""Longest time in ns that messages stay buffered before the loop's turn ends."""

CANCEL_SHARE = 0.2
"""Share of waits for credit that a fickle application cancels."""

HESITATE_NS = 100 * MILLISECOND
"""Longest delay in ns of an application that hesitates before it starts, or before it chooses a first number."""


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


class Watched(Observer):
    """Let the checkers of the world watch one life."""

    def __init__(self, source: "SourceProcess", checkers: Checkers) -> None:
        self._source = source
        self._checkers = checkers
        self._life = source.config.incarnation

    def sent(self, block: Block) -> None:
        self._checkers.on_sent(self._life, block.first, block.first + block.count, block.large)

    def stable(self, first: int, last: int) -> None:
        active = [STORES[held.request.store_index] for held in self._source.registrations() if held.active]
        self._checkers.on_stable(self._life, first, last + 1, active)

    def reclaimed(self, first: int, last: int, *, forced: bool) -> None:
        if forced:
            self._checkers.on_forced(self._life, first, last + 1)


class StreamSource(Sender):
    """A life with a stream and a request port at a simulated process: the source's own, or a proxy's."""

    process: VirtualProcess
    machine: SourceEndpoint
    alive: bool

    def _make(self, process: VirtualProcess, config: SourceConfig) -> None:
        self.process = process
        self.machine = self._prepare(config)
        self._subscribers: list[Connection] = []

    def _listen(self, trace: LiveTrace) -> VirtualDriver[inputs.SourceInput, fx.SourceEffect]:
        """Open the two ports, and return the driver."""
        driven: Driven[inputs.SourceInput, fx.SourceEffect] = Driven(self.machine, trace)
        driver = VirtualDriver(self.process, driven, self._perform)
        self._feed = driver.feed
        self.process.listen(self.config.reply_to, self._accept)
        self.process.listen(self.config.transport, self._admit)
        return driver

    def _accept(self, connection: Connection) -> None:
        serve(self._on_items)(connection)

    def _admit(self, connection: Connection) -> None:
        """Greet a new subscriber of the stream."""
        connection.on_lost[False] = lambda: self._subscribers.remove(connection)
        if connection.broken:
            return
        connection.write(self.process, self.greeting())
        self._subscribers.append(connection)

    def _on_items(self, items: Sequence[Item]) -> None:
        for item in items:
            assert not isinstance(item, NO_MESSAGE)
            if item.incarnation == self.config.incarnation:
                self._feed(inputs.Arrived(item))

    def _encode(self, message: msg.Message) -> bytes:
        return encode(message)

    def _write(self, octets: bytes) -> None:
        for connection in self._subscribers:
            connection.write(self.process, octets)

    def _send_to(self, address: str, octets: bytes) -> None:
        self.process.pool.send(address, octets)

    def _released(self, number: int) -> None:
        """Keep nothing: the codec's caches have the messages."""

    def fail(self, what: object, error: Exception) -> None:
        """Let the world end: nothing fails here."""
        raise error


class SourceProcess(StreamSource, VirtualProcess):
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
        self._make(self, config)
        self._out.collects = True  # The application's loop has turns of random length.
        self.observe(Watched(self, checkers))
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
        self._blocked = False
        self._size = 1
        self._planned = False

    def start(self, trace: LiveTrace) -> None:
        """Listen and register, after a delay if the application hesitates."""
        self._listen(trace)
        if self.hesitates:
            delay = int(self.world.rng.random() * HESITATE_NS)
            self.world.after(delay, lambda: self.deliver(lambda: self._feed(inputs.Start())))
        else:
            self._feed(inputs.Start())

    def want(self, count: int) -> None:
        """Send `count` messages as soon as credit permits."""
        self.wanted += count
        self.deliver(self._send)

    def locate(self, name: str, address: str) -> None:
        """Pass the address of a named store to the machine."""
        self._feed(inputs.Located(name, address))

    def withdraw(self) -> None:
        """Deregister, and send nothing more."""
        self.wanted = 0
        self._out = Outbox(self.machine)  # What waits is dropped.
        self._feed(inputs.Withdraw())

    @property
    def idle(self) -> bool:
        """True if every wanted message was sent and is settled."""
        return self.calm and not self.machine.in_flight_messages

    @property
    def calm(self) -> bool:
        """True if every wanted message was sent."""
        return not self.wanted and not self._out.waiting and self.machine.can_send

    def registrations(self) -> Iterable[RegistrationStatus]:
        return self.machine.status.registrations.values()

    def broken(self, event: inputs.Reset | inputs.Gone) -> None:
        self._feed(event)

    # The application.

    def cut(self, most: int) -> None:
        """Fragment messages into at most `most` pieces, as far as they fit the flight."""
        config = self.config
        limits = (most, config.flight_bytes // PAYLOAD.size or most)
        self.pieces = min(limits) if config.flight_behavior is FlightBehavior.BLOCK else most

    def _send(self) -> None:
        """Send while there is credit. The messages leave with the next flush."""
        if not self.machine.can_send:
            return
        before = self.wanted
        while self.wanted and self._out.fits(PAYLOAD.size * (size := min(self._size, self.wanted))):
            payload = b"".join(self._content(self._out.next + place) for place in range(size))
            self._out.add(payload, Extra(0, None, size) if size > 1 else None)
            self.wanted -= size
            if self.pieces > 1:
                self._size = self.world.rng.randint(1, self.pieces)
        if self.wanted < before:
            self._soon()
        if self.pieces > 1 or self.wanted == before:
            self._wait(min(self._size, self.wanted))

    def _content(self, number: int) -> bytes:
        return PAYLOAD.pack(self.config.incarnation, serial.wire(number))

    def _wait(self, pieces: int) -> None:
        """Ask the machine for a wakeup when there is credit for a message."""
        if self.wanted and not self._blocked:
            if self.cancels and self._fickle.random() < CANCEL_SHARE:  # The task that waits for credit is cancelled.
                self.wanted = 0
                return
            self._blocked = True
            self._feed(inputs.Blocked(pieces * PAYLOAD.size))

    def _soon(self) -> None:
        if not self._planned:
            self._planned = True
            delay = int(self.world.rng.random() * FLUSH_NS)
            self.world.after(delay, lambda: self.deliver(self._turn))

    def _turn(self) -> None:
        self._planned = False
        self.flush()
        self._send()

    # What the client's sender leaves to a program.

    def _encode_block(self, block: Block) -> bytes:
        if block.large:
            return pieces(self._topic_index, self.config.incarnation, block.large)
        return super()._encode_block(block)

    def _on_notify(self, event: events.Event) -> None:
        begun = self._out.begun
        super()._on_notify(event)
        match event:
            case events.RegistrationSuccess():
                self.known_at[event.store_index] = event.reg_id
                if self._turns:
                    self._checkers.facts.on_turn(STORES[event.store_index])
                self._checkers.on_registered(self, event.store_index, event.reg_id)
            case events.RegistrationComplete() if not begun:
                self._checkers.on_life(self.config.incarnation, event.number)
            case events.Overtaken():
                self._on_over(self)
            case events.Wakeup():
                self._blocked = False
            case events.DeregistrationComplete():
                self.left = True
            case _:
                self._checkers.on_oddity(event)
        self._soon()
