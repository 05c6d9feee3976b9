"""The resolution service (SRS): it knows all sources and all interest of its domain, and sends contexts what they want.

On each connection a context sends SETUP, registers, announces all its records, and requests the stream. The service
then sends every wanted source and returns the request: the full exchange is complete (T-402, T-408). After that, only
changes and keepalives travel (T-403, T-406). Interest stays at the service and filters (T-404).

* The records of a broken connection are potentially down. At the end of their lifetime they are deleted, and the
  deletion is sent to contexts (`client`). A context that lost the transport of such a source reports this (SLR). Then
  the service only waits shortly for the source's return (T27).
* A hello that is older than the last one of its context is late and refused. A newer one ends the former connection.
* A peer that sends no SRS, exceeds a bound, or is silent for too long, is counted and disconnected. Others do not
  notice.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import assert_never

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.codec.places import host_of
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.records import INSTANCE_BYTES
from stablecast.transports.resolution.srs import events
from stablecast.transports.resolution.srs.client import ClientState, Dropped, ServiceClient
from stablecast.transports.resolution.srs.directory import AnnouncedSource, Directory, Interest
from stablecast.transports.resolution.srs.routers import RouterMessage, Routers
from stablecast.transports.resolution.srs.session import ServiceSession
from stablecast.transports.resolution.srs.settings import ServiceConfig
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.wire import srs
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind


@attrs.define
class ServiceCounters:
    """Counters of a service.

    Attributes:
        frames: Frames received.
        malformed: Connections closed because of malformed input.
        refused: Connections closed because of a bound or a late hello.
        silent: Connections closed because of silence.
        lost: Connections that broke.
        deleted: Sources deleted because they were potentially down for too long.
        ignored: Records without meaning here.
        most_connections: The largest number of connections at one time.
    """

    frames: int = 0
    malformed: int = 0
    refused: int = 0
    silent: int = 0
    lost: int = 0
    deleted: int = 0
    ignored: int = 0
    most_connections: int = 0


class Matter(IntEnum):
    """The reasons for a look at a connection, a client, a source or a router."""

    SILENCE = 0
    LIFETIME = 1
    LEAVE = 2
    ROUTES = 3


DueItem = tuple[Matter, int | bytes]


class RefusedError(Exception):
    """The peer follows the protocol but may not continue."""


@attrs.frozen
class Admission:
    """The judgement of the driver, which knows the certificates of connections: may this one say that?"""

    admits: Callable[[int, srs.Message], bool] = lambda _connection, _message: True


@attrs.define
class ResolutionService:
    """The machine of one service.

    Attributes:
        admission: What connections may say about themselves; all else is ignored.
        told: The interest of contexts, which routers are told.
        waiting: What a router repeats that another one still seems to repeat, with its client; the oldest first.
        epoch: 32 bits that distinguish this life of the service from others; not 0.
    """

    epoch: int
    config: ServiceConfig = ServiceConfig()
    admission: Admission = Admission()
    clients: dict[bytes, ServiceClient] = attrs.field(factory=dict, init=False)
    sessions: dict[int, ServiceSession] = attrs.field(factory=dict, init=False)
    directory: Directory = attrs.field(factory=Directory, init=False)
    routers: Routers = attrs.field(factory=Routers, init=False)
    told: dict[Interest, None] = attrs.field(factory=dict, init=False)
    waiting: dict[bytes, tuple[bytes, srs.SourceInfo]] = attrs.field(factory=dict, init=False)
    agenda: KeyedDeadlines[DueItem] = attrs.field(factory=KeyedDeadlines, init=False)
    counted: ServiceCounters = attrs.field(factory=ServiceCounters, init=False)
    numbers: int = attrs.field(default=0, init=False)
    spoken: dict[int, ServiceSession] = attrs.field(factory=dict, init=False)
    outbox: list[events.ServiceEffect] = attrs.field(factory=list, init=False)

    def receive(self, event: events.ServiceInput, now: int) -> None:
        """Feed one input. Faults of peers end their connection and raise nothing."""
        match event:
            case events.ConnectionAccepted(connection, peer):
                self._on_accepted(connection, peer, now)
            case events.BytesReceived(connection, data):
                session = self.sessions.get(connection)
                if session is not None:
                    self._on_data(session, data, now)
            case events.ConnectionClosed(connection):
                session = self.sessions.pop(connection, None)
                if session is not None:
                    self.counted.lost += 1
                    self._on_lost(session, now)
            case _:
                assert_never(event)
        self._flush()

    def handle_timeout(self, now: int) -> None:
        """Close silent connections, and delete records that were potentially down for their lifetime."""
        while (item := self.agenda.pop(now)) is not None:
            match item:
                case (Matter.SILENCE, int(connection)):
                    self._check_silence(connection, now)
                case (Matter.LIFETIME, bytes(instance)):
                    if instance in self.clients:
                        self._lapse(self.clients[instance], now)
                case (Matter.ROUTES, bytes(instance)):
                    self._pass_on(instance, self.routers.lapse(instance))
                case _:
                    self._check_left(bytes(item[1]), now)
        self._flush()

    def next_timeout(self) -> int | None:
        return self.agenda.next()

    def take_effects(self) -> list[events.ServiceEffect]:
        effects, self.outbox = self.outbox, []
        return effects

    def counters(self) -> dict[str, int]:
        return {
            "connections": len(self.sessions),
            "clients": len(self.clients),
            "down": sum(not client.up for client in self.clients.values()),
            "sources": len(self.directory.sources),
            "topics_wanted": len(self.directory.wanted),
            "patterns_wanted": len(self.directory.patterns),
            **attrs.asdict(self.counted),
        }

    # Connections.

    def _on_accepted(self, connection: int, peer: str, now: int) -> None:
        session = ServiceSession(connection, peer, now)
        self.sessions[connection] = session
        self.counted.most_connections = max(self.counted.most_connections, len(self.sessions))
        if len(self.sessions) > self.config.max_clients:
            self.counted.refused += 1
            self._cut(session, f"there are {self.config.max_clients} connections already", now)
        else:
            self.agenda.arm((Matter.SILENCE, connection), now + session.lifetime)

    def _on_data(self, session: ServiceSession, data: bytes, now: int) -> None:
        session.heard_at = now
        try:
            for frame in session.decoder.feed(data):
                self.counted.frames += 1
                self._spend(session, 1, now)
                self._on_frame(session, frame, now)
        except WireError as error:
            self.counted.malformed += 1
            self._cut(session, str(error), now)
        except RefusedError as error:
            self.counted.refused += 1
            self._cut(session, str(error), now)

    def _on_lost(self, session: ServiceSession, now: int) -> None:
        """Mark the records of the connection's client as potentially down."""
        self.spoken.pop(session.connection, None)
        self.agenda.stop((Matter.SILENCE, session.connection))
        client = session.client
        if client is not None:
            self.outbox.append(Remark(f"client {session.peer} [{client.instance.hex()}] is disconnected"))
            client.lost(now)
            sources = tuple(client.sources)
            self._lapse(client, now)
            self._take_waiting(sources, now)
            if self.routers.lost(client.instance, now) and self.config.route_lifetime_ns:
                self.agenda.arm((Matter.ROUTES, client.instance), now + self.config.route_lifetime_ns)

    def _cut(self, session: ServiceSession, reason: str, now: int) -> None:
        del self.sessions[session.connection]
        self.outbox += (Remark(f"{session.peer} is cut off: {reason}"), events.Disconnect(session.connection))
        self._on_lost(session, now)

    def _spend(self, session: ServiceSession, count: int, now: int) -> None:
        """Count frames or records. Raises RefusedError for a peer that floods, so that others are served."""
        if session.spend(count, self.config.max_rate, now) > self.config.max_burst:
            raise RefusedError(f"it floods: more than {self.config.max_burst} records at once")

    def _check_silence(self, connection: int, now: int) -> None:
        session = self.sessions[connection]
        due = session.heard_at + session.lifetime
        if now < due:
            self.agenda.arm((Matter.SILENCE, connection), due)
            return
        self.counted.silent += 1
        self._cut(session, f"it was silent for {session.lifetime // MILLISECOND} ms", now)

    def _to(self, session: ServiceSession) -> ServiceSession:
        """Return the session, and note that it has bytes to send."""
        self.spoken[session.connection] = session
        return session

    def _flush(self) -> None:
        for connection, session in self.spoken.items():
            data = session.take_bytes()
            if data:
                self.outbox.append(events.SendBytes(connection, data))
        self.spoken.clear()

    # Frames and messages.

    def _on_frame(self, session: ServiceSession, frame: Frame, now: int) -> None:
        if frame.kind is FrameKind.SETUP and not session.set_up:
            session.on_setup(frame)
            self.agenda.arm((Matter.SILENCE, session.connection), now + session.lifetime)
        elif not session.set_up or frame.kind is FrameKind.SETUP:
            raise WireError(f"a frame {frame.kind.name} is out of place")
        elif frame.kind is FrameKind.KEEPALIVE:
            if frame.flags & FrameFlag.RESPOND:
                self._to(session).send(Frame(FrameKind.KEEPALIVE))
        elif frame.kind is FrameKind.REQUEST_RESPONSE:
            self._on_registration(session, frame, now)
        elif frame.kind is FrameKind.REQUEST_FNF and session.client is not None:
            messages = srs.decode(frame.payload)
            self._spend(session, len(messages), now)
            for message in messages:
                session.note(type(message))
                self._on_message(session, session.client, message, now)
        elif frame.kind is FrameKind.REQUEST_STREAM and session.client is not None:
            self._on_stream(session, session.client, frame, now)
        elif not frame.flags & FrameFlag.IGNORE:
            raise WireError(f"a frame {frame.kind.name} is out of place")

    def _on_registration(self, session: ServiceSession, frame: Frame, now: int) -> None:
        match srs.decode(frame.payload):
            case [srs.RegistrationRequest() as request] if session.client is None:
                pass
            case _:
                raise WireError("a request is no first registration")
        counter = srs.parse_hello(frame.metadata)
        instance = request.host_id.to_bytes(4) + request.session_id.to_bytes(4)
        client = session.client = self._admit(instance, session, counter, now)
        session.router = client.router = request.app_type == srs.RegistrationRequest.ROUTER
        session.hears = session.router and bool(request.interest_mode & srs.ROUTED)
        self.agenda.stop((Matter.ROUTES, instance))
        self.directory.flood(instance, everything=not request.interest_mode & srs.FILTER)
        self.outbox.append(Remark(f"client {session.peer} [{instance.hex()}] is registered"))
        answer = srs.encode(
            srs.RegistrationResponse(client_id=client.number, domain=request.domain or self.routers.domain)
        )
        metadata = srs.hello(counter) if counter else None
        flags = FrameFlag.COMPLETE | FrameFlag.NEXT
        self._to(session).send(Frame(FrameKind.PAYLOAD, frame.stream, flags, metadata=metadata, payload=answer))

    def _admit(self, instance: bytes, session: ServiceSession, counter: int, now: int) -> ServiceClient:
        client = self.clients.get(instance)
        if client is None:
            if len(self.clients) == self.config.max_clients:
                raise RefusedError(f"there are {self.config.max_clients} clients already")
            self.numbers += 1
            client = ServiceClient(
                instance,
                self.epoch << 32 | self.numbers,
                self.config.source_lifetime_ns,
                self.config.interest_lifetime_ns,
                session.connection,
                counter,
                peer=session.peer,
            )
            self.clients[instance] = client
            return client
        if client.is_late(counter):
            raise RefusedError(f"its hello {counter} is late, {client.counter} came before")
        before = self.sessions.pop(client.connection, None)
        if before is not None:
            before.client = None
            self.outbox += (
                Remark(f"{before.peer} is cut off: {session.peer} took over"),
                events.Disconnect(before.connection),
            )
            self._on_lost(before, now)
        client.peer = session.peer
        client.hello(session.connection, counter, now)
        self._plan(client)
        return client

    def _on_stream(self, session: ServiceSession, client: ServiceClient, frame: Frame, now: int) -> None:
        if session.stream:
            return
        session.stream = frame.stream
        self._settle(client, client.complete(now), now)
        self._pass_on(client.instance, self.routers.complete(client.instance, session.connection))
        for record in self.routers.everything():
            session.say(srs.encode(record))
        if session.hears:
            for interest in self.told:
                session.say(_told(interest, on=True))
        for source in self.directory.meant(client.instance, client.interests):
            session.say(source.octets)
        self._to(session).answer(srs.StreamRequest())

    def _on_message(self, session: ServiceSession, client: ServiceClient, message: srs.Message, now: int) -> None:
        if not self.admission.admits(session.connection, message):
            self.counted.ignored += 1
            return
        match message:
            case srs.SourceDelete(otid=otid) | srs.SourceInfo(otid=otid, cost=srs.ENDED):
                if client.sources.pop(otid, None) is None:
                    self.counted.ignored += 1
                    if self.waiting.get(otid, (b"",))[0] == client.instance:
                        del self.waiting[otid]
                else:
                    self._remove(otid)
                    self._take_waiting((otid,), now)
            case srs.SourceInfo():
                self._announce(client, message, now)
            case srs.ReceiverInfo(name=name):
                self._want(session, client, Interest(name))
            case srs.PatternInfo(name=name):
                self._want(session, client, Interest(name, pattern=True))
            case srs.ReceiverDelete(name=name):
                self._unwant(session, client, Interest(name), message)
            case srs.PatternDelete(name=name):
                self._unwant(session, client, Interest(name, pattern=True), message)
            case srs.DomainInfo() | srs.RouteInfo() | srs.RouteEnd() if session.router:
                self._on_router(session, client, message)
            case srs.LeaveInfo(otid=otid) if otid in self.directory.sources:
                self.agenda.arm((Matter.LEAVE, otid), now + self.config.leave_backoff_ns)
            case _:
                self.counted.ignored += 1

    # Records.

    def _announce(self, client: ServiceClient, info: srs.SourceInfo, now: int) -> None:
        otid = info.otid
        present = self.directory.sources.get(otid)
        if present is not None and present.owner != client.instance:
            owner = self.clients[present.owner]
            # A live client keeps its OTID: otherwise a hostile context could replace sources of others. But a router
            # that starts again may repeat here, from its predecessor's proxy, what this domain's own source sends.
            if not owner.is_down(otid) and not (owner.router and self._is_at_home(client, otid)):
                self.counted.ignored += 1
                if client.router and owner.router:
                    self._keep_waiting(client, info)
                return
            del owner.sources[otid]
            self._lapse(owner, now)
        if otid not in client.sources and len(client.sources) == self.config.max_sources:
            raise RefusedError(f"it has more than {self.config.max_sources} sources")
        if present is not None and present.topic != info.topic:
            self._remove(otid)
        client.sources[otid] = client.connection
        source = AnnouncedSource(otid, info.topic, srs.encode(info), client.instance)
        if self.directory.put(source):
            self._tell(source, source.octets)

    def _is_at_home(self, client: ServiceClient, otid: bytes) -> bool:
        """Return whether a client that is no router connects from the host in an OTID."""
        session = self.sessions.get(client.connection)
        return not client.router and session is not None and host_of(otid) == session.peer.rpartition(":")[0]

    def _keep_waiting(self, client: ServiceClient, info: srs.SourceInfo) -> None:
        """Keep what a router repeats: the other one may be dead, which shows only when its connection has ended."""
        self.waiting.pop(info.otid, None)
        self.waiting[info.otid] = (client.instance, info)
        if len(self.waiting) > self.config.max_sources:
            del self.waiting[next(iter(self.waiting))]

    def _take_waiting(self, lost: Iterable[bytes], now: int) -> None:
        """Announce anew what another router repeats of these sources."""
        for otid in lost:
            instance, info = self.waiting.pop(otid, (b"", None))
            client = self.clients.get(instance)
            if info is not None and client is not None and client.up:
                self._announce(client, info, now)

    def _remove(self, otid: bytes) -> None:
        source = self.directory.remove(otid)
        self._tell(source, srs.ended(source.octets))

    def _tell(self, source: AnnouncedSource, octets: bytes) -> None:
        for instance in self.directory.audience(source):
            session = self.sessions.get(self.clients[instance].connection)
            if session is not None:
                self._to(session).say(octets)

    def _want(self, session: ServiceSession, client: ServiceClient, interest: Interest) -> None:
        if interest not in client.interests:
            patterns = sum(wanted.pattern for wanted in client.interests) if interest.pattern else -1
            if len(client.interests) == self.config.max_interests or patterns == self.config.max_patterns:
                raise RefusedError("it wants too many topics or patterns")
        client.interests[interest] = client.connection
        self.directory.want(client.instance, interest)
        self._review(interest)
        if session.stream and client.instance not in self.directory.flooded:
            for source in self.directory.meant(client.instance, (interest,)):
                self._to(session).say(source.octets)

    def _unwant(self, session: ServiceSession, client: ServiceClient, interest: Interest, message: srs.Message) -> None:
        if client.interests.pop(interest, None) is not None:
            self.directory.unwant(client.instance, interest)
            self._review(interest)
        self._to(session).answer(message)

    def _review(self, interest: Interest) -> None:
        """Tell routers the interest of contexts, and its end; what routers want, they want for others."""
        wanted = any(not self.clients[one].router for one in self.directory.wanting(interest))
        if wanted == (interest in self.told):
            return
        if wanted:
            self.told[interest] = None
        else:
            del self.told[interest]
        for session in self.sessions.values():
            if session.hears:
                self._to(session).say(_told(interest, on=wanted))

    def _on_router(self, session: ServiceSession, client: ServiceClient, message: RouterMessage) -> None:
        """Note and pass on what a router tells. Raises RefusedError for one that tells too much."""
        mismatched = self.routers.mismatched
        told = self.routers.note(client.instance, session.connection, message)
        if told is None:
            raise RefusedError("it reaches too many domains, or there are too many routers")
        if self.routers.mismatched > mismatched == 0:
            text = f"{session.peer} tells another number of the domain than {self.routers.domain}, which stays"
            self.outbox.append(Remark(text, warning=True))
        self._pass_on(client.instance, told)

    def _pass_on(self, owner: bytes, records: list[srs.Message]) -> None:
        """Send records of a router to all other clients."""
        for octets in map(srs.encode, records):
            for session in self.sessions.values():
                if session.client is not None and session.client.instance != owner:
                    self._to(session).say(octets)

    def _check_left(self, otid: bytes, now: int) -> None:
        source = self.directory.sources.get(otid)
        owner = None if source is None else self.clients[source.owner]
        if owner is None or not owner.is_down(otid):
            return  # the source is back or was never away: its other receivers may still have it
        del owner.sources[otid]
        self.counted.deleted += 1
        self._remove(otid)
        self._lapse(owner, now)

    # Lifetimes.

    def _lapse(self, client: ServiceClient, now: int) -> None:
        dropped = client.lapse(now)
        self.counted.deleted += len(dropped.sources)
        self._settle(client, dropped, now)

    def _settle(self, client: ServiceClient, dropped: Dropped, now: int) -> None:
        """Delete what a client dropped, and the client if it is gone."""
        for otid in dropped.sources:
            self._remove(otid)
        self._take_waiting(dropped.sources, now)
        for interest in dropped.interests:
            self.directory.unwant(client.instance, interest)
            self._review(interest)
        if client.state is ClientState.GONE:
            del self.clients[client.instance]
            self.directory.flood(client.instance, everything=False)
            self.outbox.append(Remark(f"client [{client.instance.hex()}] is forgotten"))
        else:
            self._plan(client)

    def _plan(self, client: ServiceClient) -> None:
        due = client.next_lapse()
        if due is not None:
            self.agenda.arm((Matter.LIFETIME, client.instance), due)


def _told(interest: Interest, *, on: bool) -> bytes:
    """Return the record of interest, or of its end, for routers."""
    new, end = (srs.PatternInfo, srs.PatternEnd) if interest.pattern else (srs.ReceiverInfo, srs.ReceiverEnd)
    return srs.encode((new if on else end)(name=interest.name, instance=bytes(INSTANCE_BYTES)))
