"""The LBT-RM sources of a context: data, session messages and NCFs to the group, NAKs from anybody."""

from typing import assert_never

import attrs

from stablecast.transports.reliable.effects import SendDatagrams, SourceEffect
from stablecast.transports.reliable.inputs import Close, Flush, Forget, Heard, Open, SourceInput, Submit
from stablecast.transports.reliable.packets import Data, Refused, Standing, Told
from stablecast.transports.reliable.sending import EVERYBODY, SourceSession
from stablecast.transports.reliable.settings import LBTRM_RATES, RateSettings
from stablecast.transports.reliable.sources import Sources
from stablecast.transports.wire import lbtrm
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.sequences import Format

HEADER_BYTES = 20
"""Bytes of a data datagram before its messages."""


@attrs.frozen
class Group:
    """Where a session is: group and port, the port for NAKs, the session ID."""

    address: str
    nak_port: int
    session_id: int


@attrs.define
class LbtrmSources:
    """All LBT-RM sessions of a context; a machine."""

    rates: RateSettings = LBTRM_RATES
    sources: Sources = attrs.field(init=False)
    groups: dict[int, Group] = attrs.field(factory=dict, init=False)
    out: list[SourceEffect] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.sources = Sources.of(self.rates)

    @property
    def blocked(self) -> bool:
        """Whether nothing may be submitted until `Unblocked`."""
        return self.sources.blocked

    def receive(self, event: SourceInput, now: int) -> None:
        """Feeds one input.

        Raises:
            MisuseError: If the session is not there, is closed or blocked, or cannot take the messages.
        """
        match event:
            case Open(number, address, session_id, nak_port, settings):
                self.sources.open(number, settings, HEADER_BYTES)
                self.groups[number] = Group(address, nak_port, session_id)
            case Submit():
                self.sources.submit(event, now)
            case Flush(number):
                self.sources.get(number).flush(now)
            case Forget(number, topic):
                self.sources.get(number).marks.forget(topic)
            case Close(number, linger):
                self.sources.get(number).close(linger, now)
            case Heard(number, datagrams):
                session = self.sources.get(number)
                for octets, _ in datagrams:
                    self._hear(session, octets, now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Does what is due."""
        ended = self.sources.handle_timeout(now)
        self._flush()
        self.out += ended

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        return self.sources.next_timeout()

    def take_effects(self) -> list[SourceEffect]:
        """What to do, in order."""
        self._flush()
        effects, self.out = self.out, []
        return effects

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        self.sources.check_invariants()

    def statistics(self, number: int) -> dict[str, int]:
        """The counters of a session. Raises MisuseError if there is none."""
        return self.sources.statistics(number)

    def _hear(self, session: SourceSession, octets: bytes, now: int) -> None:
        group = self.groups[session.number]
        try:
            packet = lbtrm.decode(octets)
        except WireError:
            session.statistics.dgrams_dropped += 1
            return
        ours = (packet.nak_port, packet.session_id) == (group.nak_port, group.session_id)
        if isinstance(packet, lbtrm.Nak) and packet.format == Format.SELECTIVE and ours:
            session.on_nak(packet.sqns, EVERYBODY, now)
        else:
            session.statistics.dgrams_dropped += 1

    def _flush(self) -> None:
        """What the sessions said becomes datagrams, those of one session together."""
        number = 0
        datagrams: list[bytes] = []
        for said in self.sources.take_said():
            if datagrams and said.session != number:
                self._send(number, datagrams)
                datagrams = []
            number = said.session
            datagrams.append(_encode(said.packet, self.groups[number]))
        if datagrams:
            self._send(number, datagrams)
        for gone in [number for number in self.groups if number not in self.sources.sessions]:
            del self.groups[gone]

    def _send(self, number: int, datagrams: list[bytes]) -> None:
        self.out.append(SendDatagrams(number, self.groups[number].address, tuple(datagrams)))


def _encode(packet: Told, group: Group) -> bytes:
    port, session = group.nak_port, group.session_id
    match packet:
        case Data(number, trail, payload, again):
            flags = lbtrm.Data.UNICAST_NAKS | (lbtrm.Data.RETRANSMISSION if again else 0)
            data = lbtrm.Data(
                nak_port=port,
                session_id=session,
                sqn=number,
                trail=trail,
                flags=flags,
                symbol=lbtrm.Data.fill(number),
                payload=payload,
            )
            return lbtrm.encode(data)
        case Standing(number, lead, trail):
            standing = lbtrm.SessionMessage(nak_port=port, session_id=session, sm_sqn=number, lead=lead, trail=trail)
            return lbtrm.encode(standing)
        case Refused(trail, reason, numbers):
            return lbtrm.encode(lbtrm.Ncf(nak_port=port, session_id=session, trail=trail, reason=reason, sqns=numbers))
        case _:
            assert_never(packet)
