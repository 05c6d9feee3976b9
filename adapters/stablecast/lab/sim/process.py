"""Simulate a process: its clock, ports, connections, and a timer for each machine. It may freeze or crash.

The unmodified codec encodes and decodes all messages.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import attrs

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.inputs import Gone, Input, Reset
from stablecast.core.protocol.messages import Message
from stablecast.lab.sim.network import Connection, VirtualNetwork
from stablecast.lab.sim.virtual_time import VirtualClock, VirtualWorld
from stablecast.runtime.driver import Driven
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.wire import lbmc

REMEMBERED: Final = 4096
"""Cached messages and stream pieces: those of a few worlds."""


@attrs.frozen
class Greeting:
    """Name the source of a stream. It is the first message on each connection."""

    session_id: int


Item = Run | Message | codec.Recovered | Greeting
"""Items that arrive on a connection."""

NO_MESSAGE: Final = (Run, codec.Recovered, Greeting)
"""Items that are no messages between machines."""

encode = lru_cache(REMEMBERED)(codec.encode)
"""Return the bytes of a message.

Most messages occur several times in a world: a stream has five subscribers, and keepalives repeat. The encoding depends
on nothing else, so the cache changes no world. It saves a tenth of the run time.
"""


class ItemReader:
    """Decode the bytes of one connection."""

    def __init__(self) -> None:
        self._decoder = StreamDecoder()

    def feed(self, data: bytes) -> Sequence[Item]:
        """Return the items that these bytes complete. Raises WireError for malformed bytes."""
        if not self._decoder.pending:
            items = _whole(data)
            if items is not None:
                return items
        return [_meaning(found) for found in self._decoder.feed(data)]


@lru_cache(REMEMBERED)
def _whole(data: bytes) -> tuple[Item, ...] | None:
    """Return the items in these bytes, None if the last one is incomplete."""
    decoder = StreamDecoder()
    items = decoder.feed(data)
    return None if decoder.pending else tuple(map(_meaning, items))


def _meaning(found: Run | lbmc.Message) -> Item:
    if isinstance(found, Run):
        return found
    if found.kind in codec.RECOVERED_KINDS:
        return codec.decode_recovered(found)
    session_id = codec.session_of(found) if len(found.headers) == 1 else None
    return codec.decode(found) if session_id is None else Greeting(session_id)


EventT_contra = TypeVar("EventT_contra", bound=Input, contravariant=True)
EffectT = TypeVar("EffectT", bound=Effect)
T = TypeVar("T")


class VirtualProcess:
    """Run on one host. Everything from outside arrives through `deliver`."""

    def __init__(self, network: VirtualNetwork, name: str, host: str, clock: VirtualClock) -> None:
        self.network = network
        self.world: VirtualWorld = network.world
        self.name = name
        self.host = host
        self.clock = clock
        self.alive = True
        self.frozen = False
        self.connections: list[Connection] = []
        self.drivers: list[VirtualDriver[Any, Any]] = []
        self.pool = VirtualPool(self)
        self._ports: list[str] = []
        self._backlog: deque[Callable[[], None]] = deque()

    def now(self) -> int:
        """Return what the process's clock shows, in ns."""
        return self.clock.read(self.world.now)

    def listen(self, address: str, accept: Callable[[Connection], None]) -> None:
        self._ports.append(address)
        self.network.listeners[address] = (self, accept)

    def leave(self, address: str) -> None:
        self._ports.remove(address)
        del self.network.listeners[address]

    def deliver(self, action: Callable[[], None]) -> None:
        """Run an action from outside: now, after the end of a freeze, or never if the process has crashed."""
        if not self.alive:
            return
        if self.frozen:
            self._backlog.append(action)
        else:
            action()

    def freeze(self) -> None:
        """Stop the process; its sockets still receive."""
        self.frozen = True

    def thaw(self, *, timers_first: bool) -> None:
        """Continue the process. An event loop may run due timers first or arrived data first."""
        if not self.alive or not self.frozen:
            return
        self.frozen = False
        if timers_first:
            self._wake_all()
        while self._backlog and self.alive:
            self._backlog.popleft()()
        self._wake_all()

    def leap(self, span: int) -> None:
        """Move the clock forward by `span` ns."""
        self.clock.offset += span
        for driver in self.drivers:
            driver.on_leap()

    def crash(self, *, flush: bool = True) -> None:
        """Kill the process. With `flush`, written bytes still leave the host."""
        self.alive = False
        for address in self._ports:
            del self.network.listeners[address]
        for connection in list(self.connections):
            connection.close(self, flush=flush)

    def broken(self, event: Reset | Gone) -> None:
        raise NotImplementedError

    def _wake_all(self) -> None:
        for driver in list(self.drivers):
            driver.wake_if_due()


class VirtualDriver(Generic[EventT_contra, EffectT]):
    """Drive one machine as the event loop's driver does (`runtime.driver`): feed, record, perform, set the timer."""

    def __init__(
        self,
        process: VirtualProcess,
        driven: Driven[EventT_contra, EffectT],
        perform: Callable[[EffectT], None],
        before: Callable[[], None] | None = None,
    ) -> None:
        """Pass the machine's effects to `perform`.

        `before` runs at the end of each turn of the event loop that fed an input, and before a timer.
        """
        self._process = process
        self._driven = driven
        self._perform = perform
        self._before = before
        self._settling = False
        self._inputs: deque[EventT_contra] = deque()
        self._busy = False
        self._closed = False
        self._shown: int | None = None
        self._due: int | None = None
        process.drivers.append(self)

    def feed(self, event: EventT_contra) -> None:
        """Feed one input and perform its effects. Inputs that arise meanwhile wait in a queue."""
        self._inputs.append(event)
        if not (self._busy or self._closed):
            self._turn(self._drain)
        self.settle_soon()

    def feed_all(self, events: Iterable[EventT_contra]) -> None:
        for event in events:
            self.feed(event)

    def during(self, act: Callable[[T], None], what: T) -> None:
        """Perform what follows from a query of the machine as if it were an effect. No input may be in progress."""
        self._turn(lambda: act(what))

    def settle_soon(self) -> None:
        """Call `before` at the end of the turn."""
        if self._before is not None and not (self._settling or self._closed):
            self._settling = True
            self._process.world.after(0, lambda: self._process.deliver(self._settle))

    def _settle(self) -> None:
        self._settling = False
        if self._before is not None and not self._closed:
            self._before()

    def _turn(self, act: Callable[[], None]) -> None:
        """Act, feed the inputs that arose meanwhile, and set the timer."""
        self._busy = True
        act()
        self._drain()
        self._busy = False
        self.rearm()

    def close(self) -> None:
        """Stop the timer, drop inputs and complete the recording."""
        if self._closed:
            return
        self._closed = True
        self._inputs.clear()
        self._driven.close()
        self._process.drivers.remove(self)

    def rearm(self) -> None:
        """Set the timer to the machine's next timeout."""
        due = self._driven.machine.next_timeout()
        if due == self._shown:
            return
        self._shown = due
        if due is None:
            self._due = None
            return
        process = self._process
        instant = self._due = process.clock.when(due)
        process.world.at(instant, lambda: self._wake(instant))

    def on_leap(self) -> None:
        """Set the timer again after the clock jumped."""
        self._shown = None
        self.rearm()

    def wake_if_due(self) -> None:
        """Run a timer that passed while the process was frozen."""
        due = self._driven.machine.next_timeout()
        if due is not None and due <= self._process.now():
            self._tick()
        else:
            self.on_leap()

    def _wake(self, instant: int) -> None:
        process = self._process
        if instant != self._due or self._closed or process.frozen or not process.alive:
            return
        self._tick()

    def _tick(self) -> None:
        if self._before is not None:
            self._before()
        self._shown = self._due = None
        self._turn(self._time_out)

    def _time_out(self) -> None:
        effects = self._driven.timeout(self._process.now())
        self._note("Tick()", effects)
        for effect in effects:
            self._perform(effect)

    def _drain(self) -> None:
        while self._inputs and not self._closed:
            event = self._inputs.popleft()
            effects = self._driven.feed(event, self._process.now())
            self._note(event, effects)
            for effect in effects:
                self._perform(effect)

    def _note(self, event: object, effects: Sequence[EffectT]) -> None:
        transcript = self._process.world.transcript
        if transcript is not None:
            transcript.append(f"{self._process.world.now} {self._process.name} {event} -> {effects}")


class VirtualPool:
    """Open connections to ports of others on demand and keep them. Dial broken ones again and report them."""

    def __init__(self, process: VirtualProcess) -> None:
        self._process = process
        self._links: dict[str, list[bytes] | Connection] = {}

    def explained(self, event: Event) -> Event:
        """Return an event as it is: no handshake fails here."""
        return event

    def send(self, address: str, data: bytes) -> None:
        """Send to the listener of `address`, once connected."""
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = []
            self._dial(address)
        if isinstance(link, list):
            link.append(data)
        else:
            link.write(self._process, data)

    def _dial(self, address: str) -> None:
        def made(connection: Connection) -> None:
            queued = self._links[address]
            assert isinstance(queued, list)
            self._links[address] = connection
            connection.on_lost[True] = lost
            if connection.broken:
                lost()
            elif queued:
                connection.write(self._process, b"".join(queued))

        def refused() -> None:
            self._links.pop(address, None)
            self._process.broken(Gone(address))

        def lost() -> None:
            self._links[address] = []
            self._dial(address)
            self._process.broken(Reset(address))

        self._process.network.dial(self._process, address, made, refused)


def serve(on_items: Callable[[Sequence[Item]], None]) -> Callable[[Connection], None]:
    """Return a function that accepts connections on a request port, each with its own reader."""

    def accept(connection: Connection) -> None:
        reader = ItemReader()

        def on_data(data: bytes) -> None:
            items = reader.feed(data)
            if items:
                on_items(items)

        connection.on_data = on_data

    return accept


@attrs.define(eq=False)
class VirtualJoiner:
    """Join a source's stream and join again after a break.

    The greeting shows whether the expected life listens there. `on_items` gets the items after the greeting.
    `on_end(gone)` gets every end; after `on_end(True)` the joiner stops.
    """

    _process: VirtualProcess
    transport: str
    _session_id: int
    _on_items: Callable[[int, Sequence[Item]], None]
    _on_end: Callable[[bool], None]
    _connection: Connection | None = None
    _over: bool = False

    def __attrs_post_init__(self) -> None:
        self._dial()

    def abandon(self) -> None:
        """Leave the stream; no callback follows."""
        self._over = True
        if self._connection is not None:
            self._connection.close(self._process)

    def _dial(self) -> None:
        self._process.network.dial(self._process, self.transport, self._made, self._finish)

    def _made(self, connection: Connection) -> None:
        if self._over:
            connection.close(self._process)
            return
        self._connection = connection
        greeted = False
        reader = ItemReader()

        def on_data(data: bytes) -> None:
            nonlocal greeted
            if self._over:
                return
            items = reader.feed(data)
            if items and not greeted:
                greeted = True
                # Another life listens at this address now.
                if items[0] != Greeting(self._session_id):
                    self._finish()
                    return
                items = items[1:]
            if items:
                self._on_items(self._session_id, items)

        connection.on_data = on_data
        connection.on_lost[True] = self._lost
        if connection.broken:
            self._lost()

    def _lost(self) -> None:
        self._connection = None
        if not self._over:
            self._on_end(False)
        if not self._over:
            self._dial()

    def _finish(self) -> None:
        if not self._over:
            self.abandon()
            self._on_end(True)
