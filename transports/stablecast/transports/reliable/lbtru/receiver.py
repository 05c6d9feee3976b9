"""A receiver's session with one LBT-RU source: a client of it.

    CONNECTING --accepted--> CONNECTED --silence, reset--> OVER
    CONNECTING --exhausted, reset--> OVER                            any --leave--> OVER

The client requests a connection repeatedly, until anything of the session arrives or the attempts are exhausted. Then
it sends an acknowledgement every interval, which shows the source that its client is alive. The source resets unknown
clients, and all clients at its end.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.machine.timers import TimerTable
from stablecast.transports.reliable.packets import Datagram, SourcePacket
from stablecast.transports.reliable.receiver import OtherDatagram, ReceiverMachine, meaning
from stablecast.transports.reliable.settings import LBTRU_RECEIVER, ReceiverSettings
from stablecast.transports.wire import lbtru


class ConnectionState(IntEnum):
    CONNECTING = 0
    CONNECTED = 1
    OVER = 2


class ConnectionEvent(IntEnum):
    ACCEPTED = 0
    EXHAUSTED = 1
    RESET = 2
    SILENCE = 3
    LEAVE = 4


class ConnectionTimer(IntEnum):
    """REQUEST: repeat the request. ALIVE: send a sign of life. SILENCE: the source is silent."""

    REQUEST = 0
    ALIVE = 1
    SILENCE = 2


class ConnectionChart(Chart):
    """A client's connection with an LBT-RU source."""

    states = States.from_enum(
        ConnectionState, initial=ConnectionState.CONNECTING, final=ConnectionState.OVER, use_enum_instance=True
    )

    accepted = states.CONNECTING.to(states.CONNECTED, on=["report_began", "be_alive"])
    exhausted = states.CONNECTING.to(states.OVER, on="report_unanswered")
    reset = states.OVER.from_(states.CONNECTING, states.CONNECTED, on="report_reset")
    silence = states.CONNECTED.to(states.OVER, on="report_silence")
    leave = states.OVER.from_(states.CONNECTING, states.CONNECTED, on="drop_all")


@attrs.define
class LbtruReceiver(ReceiverMachine):
    """A client's connection; a machine. `attempts` counts the requests sent."""

    FINAL: ClassVar[IntEnum] = ConnectionState.OVER
    settings: ReceiverSettings = LBTRU_RECEIVER
    state: ConnectionState = attrs.field(default=ConnectionState.CONNECTING, init=False)
    attempts: int = attrs.field(default=0, init=False)
    timers: TimerTable = attrs.field(factory=TimerTable, init=False)
    options: tuple[lbtru.Option, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.options = (lbtru.SessionId(session_id=self.session_id),) if self.session_id else ()
        self.timers.set(ConnectionTimer.REQUEST, self.joined_at)

    def parse(self, octets: bytes) -> SourcePacket | OtherDatagram:
        plain = lbtru.read_data(octets)
        if plain is not None:
            session_id, flags, sqn, trail, payload = plain
            if self.session_id not in (session_id, 0):
                return OtherDatagram.FOREIGN
            return Datagram(sqn, trail, payload, bool(flags & lbtru.Data.RETRANSMISSION))
        packet = lbtru.decode(octets)
        if isinstance(packet, lbtru.Reset):
            return OtherDatagram.RESET
        if self.session_id and lbtru.session_of(packet) != self.session_id:
            return OtherDatagram.FOREIGN
        return meaning(packet)

    def series(self, datagrams: Sequence[bytes | memoryview], number: int) -> tuple[list[bytes | memoryview], int]:
        """Return the messages of the leading plain datagrams, numbered from `number` on, and their trail."""
        return lbtru.read_series(datagrams, self.session_id, number)

    def nak(self, numbers: tuple[int, ...]) -> bytes:
        return lbtru.encode(lbtru.Nak(sqns=numbers, options=self.options))

    def on_heard(self, now: int) -> None:
        if self.state is ConnectionState.CONNECTING:
            fire(CONNECTION, self, ConnectionEvent.ACCEPTED, now)

    def on_reset(self, now: int) -> None:
        """End the connection: the source does not know the client, or has ended."""
        fire(CONNECTION, self, ConnectionEvent.RESET, now)

    def on_leave(self, now: int) -> None:
        fire(CONNECTION, self, ConnectionEvent.LEAVE, now)

    def on_time(self, now: int) -> None:
        """Send requests and signs of life, and end with a silent source."""
        for timer in self.timers.pop_expired(now):
            match timer:
                case ConnectionTimer.REQUEST if self.attempts >= self.settings.connect_attempts:
                    # The session is over with this, so the other timers have no meaning.
                    fire(CONNECTION, self, ConnectionEvent.EXHAUSTED, now)
                    return
                case ConnectionTimer.REQUEST:
                    self.attempts += 1
                    self.timers.set(ConnectionTimer.REQUEST, now + self.settings.connect_ns)
                    self.send(lbtru.encode(lbtru.Request(options=self.options)))
                case ConnectionTimer.ALIVE:
                    self.timers.set(ConnectionTimer.ALIVE, now + self.settings.alive_ns)
                    self.send(lbtru.encode(lbtru.Ack(sqn=self._complete(), options=self.options)))
                case _ if self.heard_at + self.settings.activity_ns > now:
                    self.timers.set(ConnectionTimer.SILENCE, self.heard_at + self.settings.activity_ns)
                case _:
                    fire(CONNECTION, self, ConnectionEvent.SILENCE, now)
                    return

    def next_duty(self) -> int | None:
        return self.timers.next()

    # Actions of the chart.

    def be_alive(self, now: int) -> None:
        """Send signs of life from now on, and watch for silence of the source."""
        self.timers.stop(ConnectionTimer.REQUEST)
        self.timers.set(ConnectionTimer.ALIVE, now + self.settings.alive_ns)
        self.timers.set(ConnectionTimer.SILENCE, now + self.settings.activity_ns)

    def report_unanswered(self, _: int) -> None:
        """Report that the source did not answer."""
        self.report_end(f"{self.source} did not answer {self.attempts} requests for a connection")

    def report_reset(self, _: int) -> None:
        self.report_end("the source reset the connection")

    def _complete(self) -> int:
        """Return the wire number up to which nothing is missing."""
        gaps = self.session.gaps
        high = -1 if gaps.high is None else gaps.high
        return serial.wire(next(iter(gaps.missing), high + 1) - 1)


_S = ConnectionState
_E = ConnectionEvent
CONNECTION = lower(
    ConnectionChart,
    LbtruReceiver,
    ConnectionState,
    ConnectionEvent,
    ignore={_S.OVER: (_E.LEAVE,)},
    reject={
        _S.CONNECTING: (_E.SILENCE,),
        _S.CONNECTED: (_E.ACCEPTED, _E.EXHAUSTED),
        _S.OVER: (_E.ACCEPTED, _E.EXHAUSTED, _E.RESET, _E.SILENCE),
    },
)
