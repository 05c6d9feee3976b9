"""A receiver's session with one LBT-RM source.

    WAITING --heard--> ACTIVE --silence--> OVER          WAITING --silence--> OVER          any --leave--> OVER

Everything from the source is a sign of life. There is no message for the end: a source ends in silence.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

import attrs

from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.transports.reliable.packets import Datagram, SourcePacket
from stablecast.transports.reliable.receiver import OtherDatagram, ReceiverMachine, meaning
from stablecast.transports.reliable.settings import LBTRM_RECEIVER, ReceiverSettings
from stablecast.transports.wire import lbtrm

_NAME = slice(2, lbtrm.HEADER.size)
"""The bytes of a datagram that name its session."""


class ListeningState(IntEnum):
    WAITING = 0
    ACTIVE = 1
    OVER = 2


class ListeningEvent(IntEnum):
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


def name_of(nak_port: int, session_id: int) -> bytes:
    """Return the bytes that name a session in its datagrams. With the sender's host they identify the session."""
    return lbtrm.HEADER.pack(0, 0, nak_port, session_id)[_NAME]


def by_name(datagrams: list[memoryview]) -> dict[bytes, list[memoryview]]:
    """Group datagrams by their names, in order; usually there is one name."""
    names = [octets[_NAME].tobytes() for octets in datagrams]
    if names.count(names[0]) == len(names):
        return {names[0]: datagrams}
    found: dict[bytes, list[memoryview]] = {}
    for name, octets in zip(names, datagrams, strict=True):
        found.setdefault(name, []).append(octets)
    return found


@attrs.define
class LbtrmReceiver(ReceiverMachine):
    FINAL: ClassVar[IntEnum] = ListeningState.OVER
    settings: ReceiverSettings = LBTRM_RECEIVER
    state: ListeningState = attrs.field(default=ListeningState.WAITING, init=False)
    nak_port: int = attrs.field(init=False)
    name: bytes = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.nak_port = int(self.source.rpartition(":")[2])
        self.name = name_of(self.nak_port, self.session_id)

    def parse(self, octets: bytes) -> SourcePacket | OtherDatagram:
        plain = lbtrm.read_data(octets)
        if plain is not None:
            nak_port, session_id, sqn, trail, flags, payload = plain
            if session_id != self.session_id or nak_port != self.nak_port:
                return OtherDatagram.FOREIGN
            return Datagram(sqn, trail, payload, bool(flags & lbtrm.Data.RETRANSMISSION))
        packet = lbtrm.decode(octets)
        if packet.session_id != self.session_id or packet.nak_port != self.nak_port:
            return OtherDatagram.FOREIGN
        return meaning(packet)

    def series(self, datagrams: Sequence[bytes | memoryview], number: int) -> tuple[list[bytes | memoryview], int]:
        """Return the messages of the leading plain datagrams, numbered from `number` on, and their trail."""
        return lbtrm.read_series(datagrams, self.name, number)

    def nak(self, numbers: tuple[int, ...]) -> bytes:
        return lbtrm.encode(lbtrm.Nak(nak_port=self.nak_port, session_id=self.session_id, sqns=numbers))

    def on_heard(self, now: int) -> None:
        if self.state is ListeningState.WAITING:
            fire(LISTENING, self, ListeningEvent.HEARD, now)

    def on_reset(self, now: int) -> None:
        """Do nothing: LBT-RM has no message for the end."""

    def on_leave(self, now: int) -> None:
        fire(LISTENING, self, ListeningEvent.LEAVE, now)

    def on_time(self, now: int) -> None:
        """End the session if the source is silent."""
        if now >= self.next_duty():
            fire(LISTENING, self, ListeningEvent.SILENCE, now)

    def next_duty(self) -> int:
        """Return when the silence of the source ends the session."""
        settings = self.settings
        before = settings.preactivity_ns or settings.activity_ns
        return self.heard_at + (before if self.state is ListeningState.WAITING else settings.activity_ns)


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
