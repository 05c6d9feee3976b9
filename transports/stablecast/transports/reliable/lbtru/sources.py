"""The LBT-RU sources of a context: each datagram goes to each client, a repair or an NCF to the requester (U21).

A receiver requests a connection. The answer is a session message that accepts it and states the limits of the window. A
datagram from an address that is no client is answered with a reset. The reset has neither session nor client ID,
because public dissectors misread them there. A session that ends resets its clients.
"""

from collections.abc import Iterable
from typing import assert_never

import attrs

from stablecast.core.machine.timers import soonest
from stablecast.transports.reliable.effects import ClientJoined, ClientLeft, SendDatagrams
from stablecast.transports.reliable.inputs import OpenSession
from stablecast.transports.reliable.packets import Datagram, DatagramSeries, NakRefusal, SessionStatus, SourcePacket
from stablecast.transports.reliable.settings import LBTRU_RATES, MAX_CLIENTS, RateSettings
from stablecast.transports.reliable.source_session import EVERYBODY, Addressed, SourceSession
from stablecast.transports.reliable.sources import SourceSessions
from stablecast.transports.wire import lbtru
from stablecast.transports.wire.reliable_packets import Format

RESET = lbtru.encode(lbtru.Reset())


@attrs.define
class SessionClients:
    """The clients of one session by address, the longest silent first; `timeout_ns` of silence ends a client.

    Every datagram from a client is a sign of life. A client sends acknowledgements for no other reason.
    """

    timeout_ns: int
    heard_at: dict[str, int] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.heard_at)

    def add(self, client: str, now: int) -> bool:
        """Add a client, and return whether there is room for it."""
        if len(self.heard_at) >= MAX_CLIENTS:
            return False
        self.heard_at[client] = now
        return True

    def hear(self, client: str, now: int) -> bool:
        """Note a sign of life, and return whether the sender is a client."""
        if client not in self.heard_at:
            return False
        del self.heard_at[client]  # moves it to the end of the order of silence
        self.heard_at[client] = now
        return True

    def expire(self, now: int) -> list[str]:
        """Remove and return the clients that were silent for the timeout."""
        gone: list[str] = []
        for client, heard_at in self.heard_at.items():
            if heard_at + self.timeout_ns > now:
                break
            gone.append(client)
        for client in gone:
            del self.heard_at[client]
        return gone

    def next(self) -> int | None:
        """Return when `expire` is due, in nanoseconds."""
        oldest = next(iter(self.heard_at.values()), None)
        return None if oldest is None else oldest + self.timeout_ns


@attrs.define
class UnicastSession:
    """A session with its clients; `options` are in all its packets."""

    session_id: int
    clients: SessionClients
    options: tuple[lbtru.Option, ...]


@attrs.define
class LbtruSources(SourceSessions):
    """All LBT-RU sessions of a context; a machine."""

    rates: RateSettings = LBTRU_RATES
    services: dict[int, UnicastSession] = attrs.field(factory=dict, init=False)

    def begin(self, event: OpenSession) -> None:
        options = (lbtru.SessionId(session_id=event.session_id),) if event.session_id else ()
        self.services[event.session] = UnicastSession(
            event.session_id, SessionClients(event.settings.client_ns), options
        )

    def audience(self, number: int, to: str) -> Iterable[str]:
        """Return the addressee of a packet, or all clients."""
        return (to,) if to != EVERYBODY else self.services[number].clients.heard_at

    def part(self, number: int) -> None:
        """Reset the clients of the session."""
        for client in self.services.pop(number).clients.heard_at:
            self.out += (SendDatagrams(number, client, (RESET,)), ClientLeft(number, client))

    def handle_timeout(self, now: int) -> None:
        """Perform what is due, and drop clients that were silent for too long."""
        for number, service in self.services.items():
            for client in service.clients.expire(now):
                self._leave(number, client)
        super().handle_timeout(now)

    def next_timeout(self) -> int | None:
        return soonest(super().next_timeout(), *[service.clients.next() for service in self.services.values()])

    def statistics(self, number: int) -> dict[str, int]:
        """Return the counters of a session, and its number of clients. Raises MisuseError for an unknown session."""
        return {**super().statistics(number), "num_clients": len(self.services[number].clients)}

    def hear(self, session: SourceSession, octets: bytes, sender: str, now: int) -> bool:
        """Handle requests, NAKs, and signs of life, and return False for other datagrams. Raises WireError."""
        service, packet = self.services[session.number], lbtru.decode(octets)
        wanted = isinstance(packet, lbtru.Request | lbtru.Nak | lbtru.Ack)
        if not wanted or (service.session_id and lbtru.session_of(packet) != service.session_id):
            return False
        if isinstance(packet, lbtru.Request) and self._admit(session, service, sender, now):
            self.said.append(Addressed(session.number, session.standing(opening=True), sender))
        # A client that was dropped would wait for data forever: the reset makes it connect again.
        elif not service.clients.hear(sender, now):
            self.out.append(SendDatagrams(session.number, sender, (RESET,)))
        elif isinstance(packet, lbtru.Nak) and packet.format == Format.SELECTIVE:
            session.on_nak(packet.sqns, sender, now)
        return True

    def encode(self, number: int, packet: SourcePacket) -> list[bytes]:
        service = self.services[number]
        options = service.options
        match packet:
            case DatagramSeries(number, trail, payloads):
                return lbtru.encode_data(0, number, trail, service.session_id, payloads)
            case Datagram(number, trail, payload):
                return lbtru.encode_data(lbtru.Data.RETRANSMISSION, number, trail, service.session_id, [payload])
            case SessionStatus(number, lead, trail, opening):
                flags = lbtru.SessionMessage.SYN if opening else 0
                standing = lbtru.SessionMessage(flags=flags, sm_sqn=number, lead=lead, trail=trail, options=options)
                return [lbtru.encode(standing)]
            case NakRefusal(trail, reason, numbers):
                return [lbtru.encode(lbtru.Ncf(trail=trail, reason=reason, sqns=numbers, options=options))]
            case _:
                assert_never(packet)

    def _admit(self, session: SourceSession, service: UnicastSession, client: str, now: int) -> bool:
        """Return whether the sender is a client now. A known client may repeat its request."""
        # The first answer may be lost, so a repeated request is answered again.
        if service.clients.hear(client, now):
            return True
        if not service.clients.add(client, now):
            return False
        session.copies = len(service.clients)
        self.out.append(ClientJoined(session.number, client))
        return True

    def _leave(self, number: int, client: str) -> None:
        session = self.get(number)
        session.copies = len(self.services[number].clients)
        session.answers.pop(client, None)
        self.limiter.forget(number, client)
        self.out.append(ClientLeft(number, client))
