"""A context's connection to one service, which is made again forever (T-407).

    WAITING --retry--> CONNECTING --opened--> REGISTERING --registered--> EXCHANGING --told_all--> CURRENT
       ^------------------------------- lost, from every other state ------------------------------'

Each attempt is a connection with a number of its own. After registration the context announces all records and requests
the stream. The service's records are current once it returns the request. A service that is silent for the lifetime of
the connection is lost, also while connecting. The wait between attempts doubles up to a bound. It starts low again
after a complete exchange.

A restarted service has lost its memory. A source that it does not name may not have been announced to it again yet. So
its first full exchange removes nothing at once, but after a grace in which all contexts return.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum

import attrs

from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import TimerTable
from stablecast.core.machine.units import milliseconds
from stablecast.transports.resolution.srs.directory import Interest
from stablecast.transports.resolution.srs.events import Connect, Disconnect, SendBytes, ServiceChanged, SrsContextEffect
from stablecast.transports.resolution.srs.session import MAX_PAYLOAD
from stablecast.transports.resolution.srs.settings import ClientConfig
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import text_of
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind


class LinkState(IntEnum):
    WAITING = 0
    CONNECTING = 1
    REGISTERING = 2
    EXCHANGING = 3
    CURRENT = 4


class LinkEvent(IntEnum):
    RETRY = 0
    OPENED = 1
    REGISTERED = 2
    TOLD_ALL = 3
    LOST = 4


class LinkChart(Chart):
    states = States.from_enum(LinkState, initial=LinkState.WAITING, use_enum_instance=True)

    retry = states.WAITING.to(states.CONNECTING, on="connect")
    opened = states.CONNECTING.to(states.REGISTERING, on="greet")
    registered = states.REGISTERING.to(states.EXCHANGING, on="note_service")
    told_all = states.EXCHANGING.to(states.CURRENT, on=["report_up", "settle"])
    lost = (
        states.CONNECTING.to(states.WAITING, on="back_off")
        | states.REGISTERING.to(states.WAITING, on="back_off")
        | states.EXCHANGING.to(states.WAITING, on="back_off")
        | states.CURRENT.to(states.WAITING, on="back_off")
    )


class LinkTimer(IntEnum):
    RETRY = 0
    KEEPALIVE = 1
    SILENCE = 2
    SWEEP = 3


REGISTRATION_STREAM = 1
"""Streams of a client are odd; each request takes the next one."""


@attrs.define
class ServiceLink:
    """One service, from the view of a context.

    Attributes:
        address: Its address, `host:port`.
        instance: The 8 bytes that name the context.
        connection: The number of the current or last attempt.
        stream: The last stream on which a request was made.
        numbered: True if the service supports numbered connections, so that it answers withdrawn interest.
        epoch: The life of the service, by its registration answer.
        settled: The life whose records are complete here; 0: none yet.
        unanswered: Unanswered withdrawals of each interest. Its records are outdated until all are answered.
        wait_ns: The last wait between attempts, before it was shortened at random; 0: no failure since.
    """

    address: str
    instance: bytes
    config: ClientConfig
    seeded: Seeded
    out: list[SrsContextEffect]
    state: LinkState = LinkState.WAITING
    connection: int = 0
    stream: int = REGISTRATION_STREAM
    numbered: bool = False
    epoch: int = 0
    settled: int = 0
    unanswered: dict[Interest, int] = attrs.field(factory=dict)
    wait_ns: int = 0
    timers: TimerTable = attrs.field(factory=TimerTable)
    decoder: rsocket.FrameDecoder = attrs.field(factory=rsocket.FrameDecoder)

    def __attrs_post_init__(self) -> None:
        self.timers.set(LinkTimer.RETRY, 0)

    @property
    def told(self) -> bool:
        """True if the service has received all records and must receive changes."""
        return self.state in (LinkState.EXCHANGING, LinkState.CURRENT)

    def is_on(self, connection: int) -> bool:
        """Return whether this is the current connection; input from any other is late."""
        return self.state is not LinkState.WAITING and self.connection == connection

    def on_opened(self, local: str, now: int) -> None:
        """Greet the service; `local` is this end, `ip:port`. Raises MisuseError unless a connection was requested."""
        fire(LINK, self, LinkEvent.OPENED, now, local)

    def on_data(self, data: bytes, now: int) -> Iterator[srs.Message]:
        """Yield the messages in the next bytes. Malformed bytes end the connection and the iteration."""
        self.timers.set(LinkTimer.SILENCE, now + self.config.lifetime_ns)
        try:
            for frame in self.decoder.feed(data):
                yield from self._on_frame(frame, now)
        except WireError as error:
            self.give_up(str(error), now)

    def on_lost(self, reason: str, now: int) -> None:
        """Handle a connection that broke, or was not made."""
        fire(LINK, self, LinkEvent.LOST, now, reason)

    def give_up(self, reason: str, now: int) -> None:
        """Break the connection, for a reason that is reported."""
        self.out.append(Disconnect(self.connection))
        self.on_lost(reason, now)

    def handle_timeout(self, now: int, number: int) -> list[int]:
        """Perform what is due, and return the timers that were due. A new connection gets `number`."""
        due = self.timers.pop_expired(now)
        if LinkTimer.RETRY in due:
            fire(LINK, self, LinkEvent.RETRY, now, number)
        if LinkTimer.SWEEP in due:
            self.settled = self.epoch
        if LinkTimer.SILENCE in due:
            self.give_up(f"it was silent for {milliseconds(self.config.lifetime_ns)} ms", now)
        elif LinkTimer.KEEPALIVE in due:
            self.timers.set(LinkTimer.KEEPALIVE, now + self.config.keepalive_ns)
            self._send(Frame(FrameKind.KEEPALIVE, flags=FrameFlag.RESPOND))
        return due

    def tell(self, records: Iterable[bytes]) -> None:
        """Send records in as few requests as their size allows."""
        payload = b""
        frames: list[Frame] = []
        for record in records:
            if payload and len(payload) + len(record) > MAX_PAYLOAD:
                frames.append(Frame(FrameKind.REQUEST_FNF, self._next_stream(), payload=payload))
                payload = b""
            payload += record
        if payload:
            frames.append(Frame(FrameKind.REQUEST_FNF, self._next_stream(), payload=payload))
        self._send(*frames)

    def withdraw(self, interest: Interest, record: bytes) -> None:
        """Send a withdrawal. Until the answer arrives, records of the interest are outdated."""
        self.tell((record,))
        if self.numbered:
            self.unanswered[interest] = self.unanswered.get(interest, 0) + 1

    def request_stream(self) -> None:
        """Request the stream, after all records."""
        payload = srs.encode(srs.StreamRequest())
        self._send(Frame(FrameKind.REQUEST_STREAM, self._next_stream(), number=rsocket.FOREVER, payload=payload))

    # Actions of the chart.

    def connect(self, now: int, number: int) -> None:
        """Request a connection, and reset the state of the former one."""
        self.connection, self.stream, self.numbered = number, REGISTRATION_STREAM, False
        self.decoder = rsocket.FrameDecoder()
        self.unanswered.clear()
        self.timers.set(LinkTimer.SILENCE, now + self.config.lifetime_ns)
        self.out.append(Connect(number, self.address))

    def greet(self, now: int, local: str) -> None:
        """Send SETUP and registration."""
        host, _, port = local.rpartition(":")
        host_id, session_id = int.from_bytes(self.instance[:4]), int.from_bytes(self.instance[4:])
        mode = (srs.FLOOD if self.config.flood else srs.FILTER) | (srs.ROUTED if self.config.router else 0)
        request = srs.RegistrationRequest(
            app_type=srs.RegistrationRequest.ROUTER if self.config.router else srs.RegistrationRequest.APPLICATION,
            address=host,
            port=int(port),
            session_id=session_id,
            host_id=host_id,
            interest_mode=mode,
            domain=self.config.domains.number,
        )
        hello = srs.hello(self.connection)
        setup = rsocket.RsocketSetup(milliseconds(self.config.keepalive_ns), milliseconds(self.config.lifetime_ns))
        self._send(
            rsocket.setup_frame(setup),
            Frame(FrameKind.REQUEST_RESPONSE, REGISTRATION_STREAM, metadata=hello, payload=srs.encode(request)),
        )
        self.timers.set(LinkTimer.SILENCE, now + self.config.lifetime_ns)
        self.timers.set(LinkTimer.KEEPALIVE, now + self.config.keepalive_ns)

    def note_service(self, _: int, number: int, client_id: int) -> None:
        """Note the life of the service, the upper half of our ID there, and whether it repeats our number."""
        self.numbered = number == self.connection
        self.epoch = client_id >> 32
        self.settled = self.settled or self.epoch

    def report_up(self, _: int) -> None:
        """Report that the service is current. The next wait is short again."""
        self.wait_ns = 0
        self.out.append(ServiceChanged(self.address, up=True))

    def settle(self, now: int) -> None:
        """Plan the sweep of older sources after a grace, if the service is in a new life."""
        if self.settled != self.epoch:
            self.timers.set(LinkTimer.SWEEP, now + self.config.grace_ns)

    def back_off(self, now: int, reason: str) -> None:
        """Wait for the next attempt. A series of failures is reported once."""
        if not self.wait_ns:
            self.out.append(ServiceChanged(self.address, up=False, reason=reason))
        self.wait_ns = min(max(2 * self.wait_ns, self.config.retry_min_ns), self.config.retry_max_ns)
        self.timers.deadlines.clear()
        # Random, so that the contexts of a restarted service do not return at one instant.
        self.timers.set(LinkTimer.RETRY, now + self.wait_ns - self.seeded.below(self.wait_ns // 2 + 1))

    def _on_frame(self, frame: Frame, now: int) -> Iterator[srs.Message]:
        match frame.kind:
            case FrameKind.PAYLOAD:
                for message in srs.decode(frame.payload):
                    self._on_message(message, frame, now)
                    yield message
            case FrameKind.KEEPALIVE:
                if frame.flags & FrameFlag.RESPOND:
                    self._send(Frame(FrameKind.KEEPALIVE))
            case FrameKind.ERROR:
                raise WireError(f"the service refused: error {frame.number:#x} {text_of(frame.payload)}".rstrip())
            case _:
                if not frame.flags & FrameFlag.IGNORE:
                    raise WireError(f"a frame {frame.kind.name} is out of place")

    def _on_message(self, message: srs.Message, frame: Frame, now: int) -> None:
        match message:
            case srs.RegistrationResponse(client_id=client_id) if self.state is LinkState.REGISTERING:
                fire(LINK, self, LinkEvent.REGISTERED, now, srs.parse_hello(frame.metadata), client_id)
            case _ if not self.told or isinstance(message, srs.RegistrationResponse):
                raise WireError("registration is out of place")
            case srs.StreamRequest():
                fire(LINK, self, LinkEvent.TOLD_ALL, now)
            case srs.ReceiverDelete(name=name):
                self._answered(Interest(name))
            case srs.PatternDelete(name=name):
                self._answered(Interest(name, pattern=True))

    def _answered(self, interest: Interest) -> None:
        left = self.unanswered.pop(interest, 0) - 1
        if left > 0:
            self.unanswered[interest] = left

    def _next_stream(self) -> int:
        self.stream = self.stream + 2 if self.stream < rsocket.FOREVER else REGISTRATION_STREAM + 2
        return self.stream

    def _send(self, *frames: Frame) -> None:
        data = b"".join(map(rsocket.encode, frames))
        if data:
            self.out.append(SendBytes(self.connection, data))


_S = LinkState
_E = LinkEvent
LINK = lower(
    LinkChart,
    ServiceLink,
    LinkState,
    LinkEvent,
    ignore={_S.CURRENT: (_E.TOLD_ALL,)},
    reject={
        _S.WAITING: (_E.OPENED, _E.REGISTERED, _E.TOLD_ALL, _E.LOST),
        _S.CONNECTING: (_E.RETRY, _E.REGISTERED, _E.TOLD_ALL),
        _S.REGISTERING: (_E.RETRY, _E.OPENED, _E.TOLD_ALL),
        _S.EXCHANGING: (_E.RETRY, _E.OPENED, _E.REGISTERED),
        _S.CURRENT: (_E.RETRY, _E.OPENED, _E.REGISTERED),
    },
)
