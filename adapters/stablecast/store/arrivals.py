"""Arrivals at a store: messages on its port, runs and announcements on the streams of its sources.

The bytes of runs are kept under a token until the machine writes or drops them (`stablecast.runtime.kept_runs`). A
store joins a session over LBT-RM or LBT-RU once, even if several of its sources share it. What a router repeats has the
names of its hop; it gets those of the life here, so that the journal and all that is sent again have no others.
"""

from collections.abc import Callable

import attrs

from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.effects import Join, Leave
from stablecast.core.protocol.inputs import Arrived, Data, Ended, Gone, Lost, StoreInput
from stablecast.core.protocol.messages import Incarnation, SourceInfo
from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.runtime import tls
from stablecast.runtime.kept_runs import Continuity, Tokens
from stablecast.runtime.origins import Origin
from stablecast.runtime.policy import SENDERS, Right, Rights
from stablecast.runtime.reliable_receivers import ReliableReceivers
from stablecast.runtime.reliable_stream import ReliableJoiner
from stablecast.runtime.request_port import FarPeer, Found, Peer, decoded
from stablecast.runtime.routing import Routing
from stablecast.runtime.source_strings import Where, is_source_string
from stablecast.runtime.stream import Item, StreamJoiner
from stablecast.store.distant_sources import DistantSources
from stablecast.store.store_views import Traffic
from stablecast.transports import codec
from stablecast.transports.codec.domains import split_domain
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.codec.renamed import renamed
from stablecast.transports.reliable.settings import ReceiverSettings
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message


@attrs.frozen
class SessionListener:
    """The callbacks for data on the sessions.

    Attributes:
        on_run: Gets the life that sent a run, and the run.
        on_announcement: Gets an announcement of any source.
        on_lost: Gets a loss of a joined life.
        on_ended: Gets each joined life of a session that is silent.
    """

    on_run: Callable[[Incarnation, Run], None]
    on_announcement: Callable[[Message], None]
    on_lost: Callable[[Lost], None]
    on_ended: Callable[[Incarnation], None]


class _SharedSession:
    """One session and the joined lives on it, by topic index."""

    def __init__(self, listener: SessionListener) -> None:
        self.lives: dict[int, Incarnation] = {}
        self._listener = listener

    def arrived(self, _: int, items: list[Item]) -> None:
        for item in items:
            if not isinstance(item, Run):
                self._listener.on_announcement(item)
            elif item.topic_index in self.lives:  # Other sources of the session have no store here.
                life = self.lives[item.topic_index]
                self._listener.on_run(life, original(item, life))

    def lost(self, found: Lost) -> None:
        life = self.lives.get(codec.split(found.session)[1])
        if life is not None:
            self._listener.on_lost(found if life == found.session else attrs.evolve(found, session=life))

    def ended(self, _: bool) -> None:
        for incarnation in tuple(self.lives.values()):
            self._listener.on_ended(incarnation)


def original(run: Run, life: Incarnation) -> Run:
    """Return a run with the topic index of its life."""
    _, index = codec.split(life)
    if run.topic_index == index:
        return run
    return attrs.evolve(run, topic_index=index, block=renamed(run, 0, index))


class SessionMember:
    """The membership of one life in a session, with the methods of a `Joiner` of a TCP stream."""

    def __init__(self, joiner: ReliableJoiner, leave: Callable[[], None]) -> None:
        """Hold a joined session; `leave` is called once."""
        self._joiner = joiner
        self._leave: Callable[[], None] | None = leave

    def repairs(self) -> tuple[int, int]:
        """Return the numbers that the session requested by NAKs, and those that arrived twice."""
        return self._joiner.repairs()

    def pause(self) -> None:
        """Stop reading, for all lives of the session."""
        self._joiner.pause()

    def resume(self) -> None:
        """Read the datagrams of the session again."""
        self._joiner.resume()

    def abandon(self) -> None:
        """Leave; no callback comes for this life any more."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    async def close(self) -> None:
        """Leave the session, as `abandon` does."""
        self.abandon()


class SharedSessions:
    def __init__(self, interface: str, listener: SessionListener) -> None:
        """Make an empty set of sessions; groups are joined at `interface`."""
        self._receivers = ReliableReceivers(interface)
        self._listener = listener
        self._joined: dict[Where, tuple[_SharedSession, ReliableJoiner]] = {}

    def join(self, where: Where, incarnation: Incarnation, index: int, settings: ReceiverSettings) -> SessionMember:
        """Join the session of a life, with the settings of the first life that joined it. Raises PortError.

        Args:
            where: The session.
            incarnation: The life.
            index: Its topic index on the session.
            settings: Those of the receiver.
        """
        if where not in self._joined:
            session = _SharedSession(self._listener)
            callbacks = (session.arrived, session.lost, session.ended)
            joiner = ReliableJoiner(self._receivers, where, settings, *callbacks, patient=True)
            self._joined[where] = session, joiner
        session, joiner = self._joined[where]
        session.lives[index] = incarnation

        def leave() -> None:
            if session.lives.get(index) == incarnation:
                del session.lives[index]
            if not session.lives and self._joined.pop(where, None) is not None:
                joiner.abandon()

        return SessionMember(joiner, leave)

    def all_statistics(self) -> dict[str, dict[str, int]]:
        """Return the counters of each session, by source string, with the number of joined sources."""
        found = self._receivers.all_statistics()
        for where, (session, _) in self._joined.items():
            found.get(f"receiver {where}", {}).update(joined=len(session.lives))
        return found

    def move(self, interface: str) -> None:
        """Receive at another address of this host. Raises PortError."""
        self._receivers.move(interface)

    def close(self) -> None:
        self._receivers.close()


class StoreArrivals:
    """Feeds a machine with arrivals.

    Attributes:
        traffic: Messages and bytes of each life's stream.
        joiners: The joined stream of each life.
        tokens: The bytes of runs.
    """

    def __init__(
        self,
        feed: Callable[[StoreInput], None],
        on_message: Callable[[ControlMessage], None],
        may_say: Callable[[Found, Peer | FarPeer], bool],
        routing: Routing,
        interface: str,
        transports: TransportConfig | None = None,
    ) -> None:
        """Pass inputs to `feed` and control messages to `on_message`; count dropped items where `routing` counts.

        `may_say` tells whether a peer may send a message; the others are dropped.

        Groups are joined at the address `interface`.
        """
        self._feed = feed
        self._on_message = on_message
        self._may_say = may_say
        self._routing = routing
        self._oddities = routing.origins.oddities
        self.tokens = Tokens()
        self.traffic: dict[int, Traffic] = {}
        self.joiners: dict[int, StreamJoiner | SessionMember] = {}
        self._places: dict[int, str] = {}
        self._joined: dict[int, tuple[str, tuple[int, int]]] = {}
        self._names: dict[Incarnation, Incarnation] = {}
        self._announced: dict[Incarnation, SourceInfo] = {}
        self.distant = DistantSources(self._join_repeated)
        listener = SessionListener(self._on_run, self._on_announcement, self._on_lost, self._on_silent)
        self._sessions = SharedSessions(interface, listener)
        self._transports = transports or TransportConfig()
        self._streams = Continuity()
        self._paused = False

    def on_items(self, items: list[Item], peer: Peer) -> None:
        """Process control messages and retransmissions on the store's port, if the peer may say them."""
        recovered: list[codec.Recovered | codec.RecoveredRun] = []
        for found, sender in decoded(items, peer, self._oddities, self._routing):
            if not self._may_say(found, sender):
                continue
            if isinstance(found, codec.Recovered | codec.RecoveredRun):
                recovered.append(found)
            else:
                self._on_message(found)
        for data in self.tokens.keep_recovered(recovered):
            self._feed(data)

    def on_stream(self, session_id: int, items: list[Item]) -> None:
        """Process runs and announcements on a stream over TCP. A gap is a loss, because TCP never fills it later."""
        for item in items:
            if isinstance(item, Run):
                incarnation = codec.join(session_id, item.topic_index)
                lost = self._streams.check(incarnation, item)
                self._on_run(incarnation, item)
                if lost is not None:
                    self._on_lost(lost)
            else:
                self._on_announcement(item)

    def join(self, effect: Join, topic: str = "") -> None:
        """Join a source's stream, once, and anew where the source has moved to; the `topic` finds it elsewhere."""
        life, place = effect.incarnation, effect.transport
        if split_domain(place)[0]:
            if self._places.get(life) != place:
                self._leave(life)
            self._places[life] = place
            self.distant.want(life, topic)
            return
        self.distant.leave(life)

        def ended(gone: bool) -> None:
            if gone:
                self.joiners.pop(life, None)
            self._feed(Gone(place) if gone else Ended(life))

        self._join(life, place, codec.split(life), self.on_stream, ended, (SENDERS, topic))

    def _join_repeated(self, life: Incarnation, source: SourceRecord) -> None:
        """Join the stream of a router that repeats a life. Its end says nothing of the source itself."""

        def ended(gone: bool) -> None:
            if gone:
                self.joiners.pop(life, None)
                self._forget_name(life)
            self._on_silent(life)

        def items(session_id: int, found: list[Item]) -> None:
            self._on_repeated(life, codec.join(session_id, source.index), session_id, found)

        if self._join(life, source.address, (source.session_id, source.index), items, ended, ((Right.ROUTER,), None)):
            self._names[source.hop] = life

    def _join(
        self,
        life: Incarnation,
        place: str,
        names: tuple[int, int],
        items: Callable[[int, list[Item]], None],
        ended: Callable[[bool], None],
        sender: tuple[Rights, str | None],
    ) -> bool:
        """Join a life at a place, by its session ID and topic index there; return whether that was news.

        `sender` has the roles of which whoever sends there must have one, for a topic.
        """
        joined = self._joined.get(life) if life in self.joiners else None
        if joined == (place, names):
            return False
        self._leave(life)
        self._joined[life] = place, names
        self.traffic.setdefault(life, Traffic())
        try:
            joiner = self._joiner(life, place, names, items, ended, sender)
        except StablecastError:
            self._oddities["stream-not-joined"] += 1
            return False
        self.joiners[life] = joiner
        if self._paused:
            joiner.pause()
        return True

    def _joiner(
        self,
        life: Incarnation,
        place: str,
        names: tuple[int, int],
        items: Callable[[int, list[Item]], None],
        ended: Callable[[bool], None],
        sender: tuple[Rights, str | None],
    ) -> StreamJoiner | SessionMember:
        """Join the source's transport. Raises PortError, TlsError."""
        session_id, index = names
        if not is_source_string(place):
            origins = self._routing.origins
            return StreamJoiner(
                place, session_id, items, ended, lambda made: origins.has_right(Origin.of(made), *sender, "a stream")
            )
        tls.require_stream(place)
        where = Where.parse(place)
        settings = (self._transports.lbtrm if where.group else self._transports.lbtru).receiver
        return self._sessions.join(where, life, index, settings)

    def _leave(self, life: Incarnation) -> None:
        self._joined.pop(life, None)
        self._forget_name(life)
        joiner = self.joiners.pop(life, None)
        if joiner is not None:
            joiner.abandon()

    def _forget_name(self, life: Incarnation) -> None:
        self._announced.pop(life, None)
        self._names = {hop: one for hop, one in self._names.items() if one != life} if self._names else {}

    def statistics(self) -> dict[str, dict[str, int]]:
        """Return the counters of each session over LBT-RM and LBT-RU."""
        return self._sessions.all_statistics()

    def traffic_of(self, incarnation: int) -> Traffic:
        """Return a copy of the traffic of a life, with the repairs of its session."""
        naks, duplicates = 0, 0
        joiner = self.joiners.get(incarnation)
        if isinstance(joiner, SessionMember):
            naks, duplicates = joiner.repairs()
        return attrs.evolve(self.traffic.get(incarnation, Traffic()), naks=naks, duplicates=duplicates)

    def leave(self, effect: Leave) -> None:
        """Leave the stream of a life, and forget its traffic."""
        life = effect.incarnation
        self._streams.forget(life)
        self._places.pop(life, None)
        self.traffic.pop(life, None)
        self.distant.leave(life)
        self._leave(life)

    def move(self, interface: str) -> None:
        """Receive what groups and LBT-RU carry at another address of this host. Raises PortError."""
        self._sessions.move(interface)

    def pause(self, on: bool) -> None:
        """Stop reading all streams, or read them again."""
        if on is self._paused:
            return
        self._paused = on
        for joiner in self.joiners.values():
            if on:
                joiner.pause()
            else:
                joiner.resume()

    async def close(self) -> None:
        """Leave all streams, and wait until they are closed."""
        for joiner in list(self.joiners.values()):
            await joiner.close()
        self._sessions.close()

    def _on_repeated(self, life: Incarnation, hop: Incarnation, session_id: int, items: list[Item]) -> None:
        """Process the stream of a router's source as if the source itself sent it."""
        session, _ = codec.split(life)
        for item in items:
            if not isinstance(item, Run):
                self._on_announcement(item)
            elif codec.join(session_id, item.topic_index) == hop:
                self.on_stream(session, [original(item, life)])

    def _on_silent(self, life: Incarnation) -> None:
        """Note that a stream has ended, for now at least."""
        self._feed(Ended(life))
        self.distant.lost(life)

    def _on_run(self, incarnation: int, run: Run) -> None:
        traffic = self.traffic.get(incarnation)
        if traffic is None:
            traffic = self.traffic[incarnation] = Traffic()
        traffic.received += run.count
        traffic.payload_bytes += run.payload_bytes
        traffic.reads += 1
        token = self.tokens.keep(run, incarnation)
        self._feed(Data(incarnation, incarnation, run.first, run.count, run.payload_bytes, False, token))

    def _on_lost(self, lost: Lost) -> None:
        if lost.session in self.traffic:
            self.traffic[lost.session].lost += lost.count
        self._feed(lost)

    def _on_announcement(self, item: Message) -> None:
        try:
            message = codec.decode(item)
        except WireError:
            self._oddities["malformed-on-stream"] += 1
            return
        if isinstance(message, SourceInfo) and message.incarnation in self._names:
            life = self._names[message.incarnation]
            message = attrs.evolve(message, incarnation=life)
            if self._announced.get(life) == message:
                return  # A router repeats it for a source that is gone, too: it is no sign of life.
            self._announced[life] = message
        if isinstance(message, SourceInfo) and message.incarnation in self.traffic:
            traffic = self.traffic[message.incarnation]
            traffic.groups = message.group_sizes
            traffic.members = tuple((entry.index, entry.group) for entry in message.stores)
        self._feed(Arrived(self._routing.known_here(message)))
