"""A receiver's session with one LBT-RU source: a client of it.

    CONNECTING --accepted--> CONNECTED --silence, reset--> OVER
    CONNECTING --exhausted, reset--> OVER                            any --leave--> OVER

A connection is asked for again and again until anything of the session comes, or there were too many attempts. Then an
acknowledgement goes out every interval, so that the source knows that its client is there. The source resets what it
does not know, and its clients when it ends.
"""

from enum import IntEnum
from typing import assert_never

import attrs

from stablecast.core import serial
from stablecast.core.chart import Chart, States, fire, lower
from stablecast.core.timers import TimerTable
from stablecast.transports.reliable.effects import Began, ReceiverEffect, SendDatagrams, SessionEnded
from stablecast.transports.reliable.inputs import Arrived, Leave, ReceiverInput
from stablecast.transports.reliable.receiving import Receiving
from stablecast.transports.reliable.settings import LBTRU_RECEIVER, ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics
from stablecast.transports.wire import lbtru
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.sequences import Format


class ConnectionState(IntEnum):
    """Where a connection is."""

    CONNECTING = 0
    CONNECTED = 1
    OVER = 2


class ConnectionEvent(IntEnum):
    """What can happen to it."""

    ACCEPTED = 0
    EXHAUSTED = 1
    RESET = 2
    SILENCE = 3
    LEAVE = 4


class ConnectionTimer(IntEnum):
    """REQUEST: ask for a connection. ALIVE: say that we are there. SILENCE: the source says nothing."""

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
class LbtruReceiver:
    """One connection; a machine.

    Attributes:
        source: Where the source's session is, `ip:port`.
        session_id: 32 bits; 0: the session has none.
        joined_at: When to begin to connect (ns).
        attempts: Requests sent.
        heard_at: When anything was heard from the source.
    """

    source: str
    session_id: int
    seed: int
    joined_at: int
    settings: ReceiverSettings = LBTRU_RECEIVER
    state: ConnectionState = attrs.field(default=ConnectionState.CONNECTING, init=False)
    attempts: int = attrs.field(default=0, init=False)
    heard_at: int = attrs.field(init=False)
    timers: TimerTable = attrs.field(factory=TimerTable, init=False)
    session: Receiving = attrs.field(init=False)
    options: tuple[lbtru.Option, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.heard_at = self.joined_at
        self.session = Receiving.of(self.settings, self.seed)
        self.options = (lbtru.SessionId(session_id=self.session_id),) if self.session_id else ()
        self.timers.set(ConnectionTimer.REQUEST, self.joined_at)

    @property
    def statistics(self) -> ReceiverStatistics:
        """The session's counters."""
        return self.session.statistics

    def receive(self, event: ReceiverInput, now: int) -> None:
        """Feeds one input; what comes after the end is passed over."""
        match event:
            case Leave():
                fire(CONNECTION, self, ConnectionEvent.LEAVE, now)
            case Arrived(datagrams):
                for octets in datagrams:
                    if self.state is not ConnectionState.OVER:
                        self._on_datagram(octets, now)
                if self.state is not ConnectionState.OVER:
                    self._settle(now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Connects, stays connected, asks for what is missing, ends with the source."""
        if self.state is ConnectionState.OVER:
            return
        self._settle(now)
        for timer in self.timers.pop_expired(now):
            match timer:
                case ConnectionTimer.REQUEST if self.attempts >= self.settings.connect_attempts:
                    fire(CONNECTION, self, ConnectionEvent.EXHAUSTED, now)
                    return
                case ConnectionTimer.REQUEST:
                    self.attempts += 1
                    self.timers.set(ConnectionTimer.REQUEST, now + self.settings.connect_ns)
                    self._send(lbtru.Request(options=self.options))
                case ConnectionTimer.ALIVE:
                    self.timers.set(ConnectionTimer.ALIVE, now + self.settings.alive_ns)
                    self._send(lbtru.Ack(sqn=self._complete(), options=self.options))
                case _ if self.heard_at + self.settings.activity_ns > now:
                    self.timers.set(ConnectionTimer.SILENCE, self.heard_at + self.settings.activity_ns)
                case _:
                    fire(CONNECTION, self, ConnectionEvent.SILENCE, now)
                    return

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        due = (self.session.next_timeout(), self.timers.next())
        return min((at for at in due if at is not None), default=None)

    def take_effects(self) -> list[ReceiverEffect]:
        """What to do, in order."""
        effects, self.session.out = self.session.out, []
        return effects

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        self.session.check_invariants()

    def abstract(self) -> tuple[str, int | None, tuple[int, ...]]:
        """State, newest number known, what is missing."""
        return (self.state.name, self.session.gaps.high, tuple(self.session.gaps.missing))

    # Actions of the chart.

    def report_began(self, _: int) -> None:
        """The first sign of life."""
        self.session.out.append(Began())

    def be_alive(self, now: int) -> None:
        """Tell the source now and then that we are there, and watch for its silence."""
        self.timers.stop(ConnectionTimer.REQUEST)
        self.timers.set(ConnectionTimer.ALIVE, now + self.settings.alive_ns)
        self.timers.set(ConnectionTimer.SILENCE, now + self.settings.activity_ns)

    def report_unanswered(self, _: int) -> None:
        """Nobody answers there."""
        self._end(f"{self.source} did not answer {self.attempts} requests for a connection")

    def report_reset(self, _: int) -> None:
        """The source does not know us, or ended."""
        self._end("the source reset the connection")

    def report_silence(self, _: int) -> None:
        """The source is gone, as far as can be told."""
        self._end("the source was silent for too long")

    def drop_all(self, _: int) -> None:
        """Nobody wants to hear of it any more."""
        self.session.end()
        self.session.out.clear()
        self.timers.deadlines.clear()

    def _end(self, reason: str) -> None:
        self.session.end()
        self.timers.deadlines.clear()
        self.session.out.append(SessionEnded(reason))

    def _on_datagram(self, octets: bytes, now: int) -> None:
        session, statistics = self.session, self.statistics
        if session.drops():
            return
        statistics.msgs_rcved += 1
        statistics.bytes_rcved += len(octets)
        try:
            packet = lbtru.decode(octets)
        except WireError:
            statistics.dgrams_dropped_type += 1
            return
        if isinstance(packet, lbtru.Reset):
            self._settle(now)
            fire(CONNECTION, self, ConnectionEvent.RESET, now)
            return
        if self.session_id and lbtru.session_of(packet) != self.session_id:
            statistics.dgrams_dropped_sid += 1
            return
        match packet:
            case lbtru.Data():
                again = bool(packet.flags & lbtru.Data.RETRANSMISSION)
                session.on_data(packet.sqn, packet.trail, packet.payload, again, now)
            case lbtru.SessionMessage():
                session.on_standing(packet.lead, packet.trail, now)
            case lbtru.Ncf(format=Format.SELECTIVE):
                session.on_refused(packet.trail, packet.reason, packet.sqns, now)
            case _:
                statistics.dgrams_dropped_other += 1
                return
        self.heard_at = now
        if self.state is ConnectionState.CONNECTING:
            fire(CONNECTION, self, ConnectionEvent.ACCEPTED, now)

    def _complete(self) -> int:
        """The wire number up to which nothing is missing."""
        gaps = self.session.gaps
        high = -1 if gaps.high is None else gaps.high
        return serial.wire(next(iter(gaps.missing), high + 1) - 1)

    def _settle(self, now: int) -> None:
        for numbers in self.session.settle(now):
            self._send(lbtru.Nak(sqns=numbers, options=self.options))

    def _send(self, packet: lbtru.Packet) -> None:
        self.session.out.append(SendDatagrams(0, self.source, (lbtru.encode(packet),)))


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
