"""A receiver's session with one LBT-RM source.

    WAITING --heard--> ACTIVE --silence--> OVER          WAITING --silence--> OVER          any --leave--> OVER

Everything from the source counts as a sign of life. There is no farewell: a source leaves in silence.
"""

from enum import IntEnum
from typing import assert_never

import attrs

from stablecast.core.chart import Chart, States, fire, lower
from stablecast.transports.reliable.effects import Began, ReceiverEffect, SendDatagrams, SessionEnded
from stablecast.transports.reliable.inputs import Arrived, Leave, ReceiverInput
from stablecast.transports.reliable.receiving import Receiving
from stablecast.transports.reliable.settings import LBTRM_RECEIVER, ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics
from stablecast.transports.wire import lbtrm
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.sequences import Format


class ListeningState(IntEnum):
    """Where a session is."""

    WAITING = 0
    ACTIVE = 1
    OVER = 2


class ListeningEvent(IntEnum):
    """What can happen to it."""

    HEARD = 0
    SILENCE = 1
    LEAVE = 2


class ListeningChart(Chart):
    """A receiver's session with an LBT-RM source."""

    states = States.from_enum(
        ListeningState, initial=ListeningState.WAITING, final=ListeningState.OVER, use_enum_instance=True
    )

    heard = states.WAITING.to(states.ACTIVE, on="report_began")
    silence = states.OVER.from_(states.WAITING, states.ACTIVE, on="report_silence")
    leave = states.OVER.from_(states.WAITING, states.ACTIVE, on="drop_all")


def transport_of(datagram: bytes) -> tuple[int, int] | None:
    """Port for NAKs and session ID that a datagram names: with its sender's host they say whose session it is of.

    None: it is no datagram of LBT-RM.
    """
    if len(datagram) < lbtrm.HEADER.size:
        return None
    version_kind, _, port, session_id = lbtrm.HEADER.unpack_from(datagram)
    return None if version_kind >> 4 else (port, session_id)


@attrs.define
class LbtrmReceiver:
    """One session; a machine.

    Attributes:
        nak_address: Where NAKs go: the source's host and its port for them.
        session_id: 32 bits.
        joined_at: When it was joined (ns).
        heard_at: When anything was heard from the source.
    """

    nak_address: str
    session_id: int
    seed: int
    joined_at: int
    settings: ReceiverSettings = LBTRM_RECEIVER
    state: ListeningState = attrs.field(default=ListeningState.WAITING, init=False)
    heard_at: int = attrs.field(init=False)
    nak_port: int = attrs.field(init=False)
    session: Receiving = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.heard_at = self.joined_at
        self.nak_port = int(self.nak_address.rpartition(":")[2])
        self.session = Receiving.of(self.settings, self.seed)

    @property
    def statistics(self) -> ReceiverStatistics:
        """The session's counters."""
        return self.session.statistics

    def receive(self, event: ReceiverInput, now: int) -> None:
        """Feeds one input; what comes after the end is passed over."""
        match event:
            case Leave():
                fire(LISTENING, self, ListeningEvent.LEAVE, now)
            case Arrived(datagrams):
                if self.state is not ListeningState.OVER:
                    for octets in datagrams:
                        self._on_datagram(octets, now)
                    self._settle(now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Asks for what is missing, gives up what was for too long, ends with the source."""
        if self.state is ListeningState.OVER:
            return
        self._settle(now)
        if now >= self._silent_at():
            fire(LISTENING, self, ListeningEvent.SILENCE, now)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        if self.state is ListeningState.OVER:
            return None
        due = self.session.next_timeout()
        silent = self._silent_at()
        return silent if due is None else min(due, silent)

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

    def report_silence(self, _: int) -> None:
        """The source is gone, as far as can be told."""
        self.session.end()
        self.session.out.append(SessionEnded("the source was silent for too long"))

    def drop_all(self, _: int) -> None:
        """Nobody wants to hear of it any more."""
        self.session.end()
        self.session.out.clear()

    def _silent_at(self) -> int:
        settings = self.settings
        before = settings.preactivity_ns or settings.activity_ns
        return self.heard_at + (before if self.state is ListeningState.WAITING else settings.activity_ns)

    def _on_datagram(self, octets: bytes, now: int) -> None:
        session, statistics = self.session, self.statistics
        if session.drops():
            return
        statistics.msgs_rcved += 1
        statistics.bytes_rcved += len(octets)
        try:
            packet = lbtrm.decode(octets)
        except WireError:
            statistics.dgrams_dropped_type += 1
            return
        if packet.session_id != self.session_id or packet.nak_port != self.nak_port:
            statistics.dgrams_dropped_sid += 1
            return
        match packet:
            case lbtrm.Data():
                again = bool(packet.flags & lbtrm.Data.RETRANSMISSION)
                session.on_data(packet.sqn, packet.trail, packet.payload, again, now)
            case lbtrm.SessionMessage():
                session.on_standing(packet.lead, packet.trail, now)
            case lbtrm.Ncf(format=Format.SELECTIVE):
                session.on_refused(packet.trail, packet.reason, packet.sqns, now)
            case _:  # NAKs of others, where those are multicast; parity, which nobody here asked for
                statistics.dgrams_dropped_other += 1
                return
        self.heard_at = now
        if self.state is ListeningState.WAITING:
            fire(LISTENING, self, ListeningEvent.HEARD, now)

    def _settle(self, now: int) -> None:
        naks = [
            lbtrm.encode(lbtrm.Nak(nak_port=self.nak_port, session_id=self.session_id, sqns=numbers))
            for numbers in self.session.settle(now)
        ]
        if naks:
            self.session.out.append(SendDatagrams(0, self.nak_address, tuple(naks)))


_S = ListeningState
_E = ListeningEvent
LISTENING = lower(
    ListeningChart,
    LbtrmReceiver,
    ListeningState,
    ListeningEvent,
    ignore={_S.ACTIVE: (_E.HEARD,), _S.OVER: (_E.LEAVE,)},
    reject={_S.OVER: (_E.HEARD, _E.SILENCE)},
)
