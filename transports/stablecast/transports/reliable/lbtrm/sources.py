"""The LBT-RM sources of a context: data, session messages and NCFs to the group, NAKs from any receiver."""

from typing import assert_never

import attrs

from stablecast.transports.reliable.inputs import OpenSession
from stablecast.transports.reliable.packets import Datagram, DatagramSeries, NakRefusal, SessionStatus, SourcePacket
from stablecast.transports.reliable.settings import LBTRM_RATES, RateSettings
from stablecast.transports.reliable.source_session import EVERYBODY, SourceSession
from stablecast.transports.reliable.sources import SourceSessions
from stablecast.transports.wire import lbtrm
from stablecast.transports.wire.reliable_packets import Format

_FIRST = lbtrm.Data.UNICAST_NAKS
_AGAIN = lbtrm.Data.UNICAST_NAKS | lbtrm.Data.RETRANSMISSION


@attrs.frozen
class MulticastSession:
    """Addresses of a session: group and port, the port for NAKs, the session ID."""

    address: str
    nak_port: int
    session_id: int


@attrs.define
class LbtrmSources(SourceSessions):
    """All LBT-RM sessions of a context; a machine."""

    rates: RateSettings = LBTRM_RATES
    groups: dict[int, MulticastSession] = attrs.field(factory=dict, init=False)

    def begin(self, event: OpenSession) -> None:
        """Note group, port and session ID."""
        self.groups[event.session] = MulticastSession(event.address, event.nak_port, event.session_id)

    def audience(self, number: int, to: str) -> tuple[str, ...]:
        """Return the group, for every packet."""
        return (self.groups[number].address,)

    def part(self, number: int) -> None:
        """Forget the session, which ends in silence."""
        del self.groups[number]

    def hear(self, session: SourceSession, octets: bytes, sender: str, now: int) -> bool:
        """Handle a NAK, and return False for any other datagram. Raises WireError."""
        group, packet = self.groups[session.number], lbtrm.decode(octets)
        # Other sessions may share the host and the port: their NAKs arrive here as well.
        ours = (packet.nak_port, packet.session_id) == (group.nak_port, group.session_id)
        if not isinstance(packet, lbtrm.Nak) or packet.format != Format.SELECTIVE or not ours:
            return False
        session.on_nak(packet.sqns, EVERYBODY, now)
        return True

    def encode(self, number: int, packet: SourcePacket) -> list[bytes]:
        """Encode a packet without parity, as the product does."""
        group = self.groups[number]
        port, session = group.nak_port, group.session_id
        match packet:
            case DatagramSeries(number, trail, payloads):
                return lbtrm.encode_data(port, session, number, trail, _FIRST, payloads)
            case Datagram(number, trail, payload):
                return lbtrm.encode_data(port, session, number, trail, _AGAIN, [payload])
            case SessionStatus(number, lead, trail):
                standing = lbtrm.SessionMessage(
                    nak_port=port, session_id=session, sm_sqn=number, lead=lead, trail=trail
                )
                return [lbtrm.encode(standing)]
            case NakRefusal(trail, reason, numbers):
                refused = lbtrm.Ncf(nak_port=port, session_id=session, trail=trail, reason=reason, sqns=numbers)
                return [lbtrm.encode(refused)]
            case _:
                assert_never(packet)
