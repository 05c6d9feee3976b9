"""The LBT-RU sources of a context: each datagram goes to each client, a repair or an NCF to the one that asked (U21).

A receiver asks for a connection; the answer is a session message that opens it and says where the session stands. What
comes from somebody who is no client, or no more, is answered by a reset, which has neither session nor client ID:
public dissectors misread them there. A session that ends resets its clients.
"""

from typing import assert_never

import attrs

from stablecast.transports.lbtru.clients import Clients
from stablecast.transports.reliable.effects import ClientJoined, ClientLeft, SendDatagrams, SourceClosed, SourceEffect
from stablecast.transports.reliable.inputs import Close, Flush, Forget, Heard, Open, SourceInput, Submit
from stablecast.transports.reliable.packets import Data, Refused, Standing, Told
from stablecast.transports.reliable.sending import EVERYBODY, Say, SourceSession
from stablecast.transports.reliable.settings import LBTRU_RATES, RateSettings
from stablecast.transports.reliable.sources import Sources
from stablecast.transports.wire import lbtru
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.sequences import Format

HEADER_BYTES = 20
"""Bytes of a data datagram before its messages, the session ID included."""

RESET = lbtru.encode(lbtru.Reset())


@attrs.define
class Service:
    """What a session is to its clients; `options` stand in all that is said."""

    session_id: int
    clients: Clients
    options: tuple[lbtru.Option, ...]


@attrs.define
class LbtruSources:
    """All LBT-RU sessions of a context; a machine."""

    rates: RateSettings = LBTRU_RATES
    sources: Sources = attrs.field(init=False)
    services: dict[int, Service] = attrs.field(factory=dict, init=False)
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
            case Open(number, _, session_id, _, settings):
                self.sources.open(number, settings, HEADER_BYTES)
                options = (lbtru.SessionId(session_id=session_id),) if session_id else ()
                self.services[number] = Service(session_id, Clients(settings.client_ns), options)
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
                for octets, client in datagrams:
                    self._hear(session, octets, client, now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Does what is due."""
        for number, service in self.services.items():
            for client in service.clients.expire(now):
                self._part(number, client)
        ended = self.sources.handle_timeout(now)
        self._flush()
        for effect in ended:
            if isinstance(effect, SourceClosed):
                self._dismiss(effect.session)
            self.out.append(effect)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        due = (self.sources.next_timeout(), *(service.clients.next() for service in self.services.values()))
        return min((at for at in due if at is not None), default=None)

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
        return self.sources.statistics(number, len(self.services[number].clients) if number in self.services else 0)

    def _hear(self, session: SourceSession, octets: bytes, client: str, now: int) -> None:
        service = self.services[session.number]
        try:
            packet = lbtru.decode(octets)
        except WireError:
            session.statistics.dgrams_dropped += 1
            return
        wanted = isinstance(packet, lbtru.Request | lbtru.Nak | lbtru.Ack)
        if not wanted or (service.session_id and lbtru.session_of(packet) != service.session_id):
            session.statistics.dgrams_dropped += 1
        elif isinstance(packet, lbtru.Request) and self._admit(session, service, client, now):
            self.sources.said.append(Say(session.number, session.standing(opening=True), client))
        elif not service.clients.hear(client, now):
            self.out.append(SendDatagrams(session.number, client, (RESET,)))
        elif isinstance(packet, lbtru.Nak) and packet.format == Format.SELECTIVE:
            session.on_nak(packet.sqns, client, now)

    def _admit(self, session: SourceSession, service: Service, client: str, now: int) -> bool:
        """Whether this is a client now; its request may be one repeated."""
        if service.clients.hear(client, now):
            return True
        if not service.clients.add(client, now):
            return False
        session.copies = len(service.clients)
        self.out.append(ClientJoined(session.number, client))
        return True

    def _part(self, number: int, client: str) -> None:
        """It is a client no more."""
        session = self.sources.get(number)
        session.copies = len(self.services[number].clients)
        session.answers.pop(client, None)
        self.sources.limiter.forget(number, client)
        self.out.append(ClientLeft(number, client))

    def _dismiss(self, number: int) -> None:
        """The session is over: so are its connections."""
        for client in self.services.pop(number).clients.heard_at:
            self.out += (SendDatagrams(number, client, (RESET,)), ClientLeft(number, client))

    def _flush(self) -> None:
        """What the sessions said becomes datagrams, those to the same together."""
        place = (0, EVERYBODY)
        datagrams: list[bytes] = []
        for said in self.sources.take_said():
            if datagrams and place != (said.session, said.to):
                self._send(*place, datagrams)
                datagrams = []
            place = (said.session, said.to)
            datagrams.append(_encode(said.packet, self.services[said.session].options))
        if datagrams:
            self._send(*place, datagrams)

    def _send(self, number: int, to: str, datagrams: list[bytes]) -> None:
        for client in self.services[number].clients.heard_at if to == EVERYBODY else (to,):
            self.out.append(SendDatagrams(number, client, tuple(datagrams)))


def _encode(packet: Told, options: tuple[lbtru.Option, ...]) -> bytes:
    match packet:
        case Data(number, trail, payload, again):
            flags = lbtru.Data.RETRANSMISSION if again else 0
            return lbtru.encode(lbtru.Data(flags=flags, sqn=number, trail=trail, options=options, payload=payload))
        case Standing(number, lead, trail, opening):
            flags = lbtru.SessionMessage.SYN if opening else 0
            standing = lbtru.SessionMessage(flags=flags, sm_sqn=number, lead=lead, trail=trail, options=options)
            return lbtru.encode(standing)
        case Refused(trail, reason, numbers):
            return lbtru.encode(lbtru.Ncf(trail=trail, reason=reason, sqns=numbers, options=options))
        case _:
            assert_never(packet)
