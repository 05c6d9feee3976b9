"""Arrivals at a store: messages on its port, runs and announcements on the streams of its sources.

The bytes of runs are kept under a token until the machine writes or drops them (`stablecast.runtime.kept_runs`). A
store joins a session over LBT-RM or LBT-RU once, even if several of its sources share it.
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
from stablecast.runtime.reliable_receivers import ReliableReceivers
from stablecast.runtime.reliable_stream import ReliableJoiner
from stablecast.runtime.request_port import FarPeer, Found, Peer, decoded
from stablecast.runtime.routing import Routing
from stablecast.runtime.source_strings import Where, is_source_string
from stablecast.runtime.stream import Item, StreamJoiner
from stablecast.store.store_views import Traffic
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable.settings import ReceiverSettings
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message


@attrs.frozen
class SessionListener:
    """The callbacks for data on the sessions.

    Attributes:
        on_run: Gets the life that sent a run, and the run.
        on_announcement: Gets an announcement of any life.
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
                self._listener.on_run(self.lives[item.topic_index], item)

    def lost(self, found: Lost) -> None:
        if self.lives.get(codec.split(found.session)[1]) == found.session:
            self._listener.on_lost(found)

    def ended(self, _: bool) -> None:
        for incarnation in tuple(self.lives.values()):
            self._listener.on_ended(incarnation)


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
    """The sessions that a store has joined."""

    def __init__(self, interface: str, listener: SessionListener) -> None:
        """Make an empty set of sessions; groups are joined at `interface`."""
        self._receivers = ReliableReceivers(interface)
        self._listener = listener
        self._joined: dict[Where, tuple[_SharedSession, ReliableJoiner]] = {}

    def join(self, where: Where, incarnation: Incarnation, settings: ReceiverSettings) -> SessionMember:
        """Join the session of a life, with the settings of the first life that joined it. Raises PortError."""
        if where not in self._joined:
            session = _SharedSession(self._listener)
            callbacks = (session.arrived, session.lost, session.ended)
            joiner = ReliableJoiner(self._receivers, where, settings, *callbacks, patient=True)
            self._joined[where] = session, joiner
        session, joiner = self._joined[where]
        index = codec.split(incarnation)[1]
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
        """Leave all sessions and close their sockets."""
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
        listener = SessionListener(self._on_run, self._on_announcement, self._on_lost, lambda life: feed(Ended(life)))
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

    def join(self, effect: Join) -> None:
        """Join a source's stream, once, and anew where the source has moved to."""
        joined = self._places.get(effect.incarnation) if effect.incarnation in self.joiners else None
        if joined == effect.transport:
            return
        if joined is not None:
            self.joiners.pop(effect.incarnation).abandon()
        self._places[effect.incarnation] = effect.transport
        self.traffic.setdefault(effect.incarnation, Traffic())

        def ended(gone: bool) -> None:
            if gone:
                self.joiners.pop(effect.incarnation, None)
            self._feed(Gone(effect.transport) if gone else Ended(effect.incarnation))

        try:
            joiner = self._joiner(effect, ended)
        except StablecastError:
            self._oddities["stream-not-joined"] += 1
            return
        self.joiners[effect.incarnation] = joiner
        if self._paused:
            joiner.pause()

    def _joiner(self, effect: Join, ended: Callable[[bool], None]) -> StreamJoiner | SessionMember:
        """Join the source's transport. Raises PortError, TlsError."""
        if not is_source_string(effect.transport):
            return StreamJoiner(effect.transport, codec.split(effect.incarnation)[0], self.on_stream, ended)
        tls.require_stream(effect.transport)
        where = Where.parse(effect.transport)
        settings = (self._transports.lbtrm if where.group else self._transports.lbtru).receiver
        return self._sessions.join(where, effect.incarnation, settings)

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
        self._streams.forget(effect.incarnation)
        self._places.pop(effect.incarnation, None)
        self.traffic.pop(effect.incarnation, None)
        joiner = self.joiners.pop(effect.incarnation, None)
        if joiner is not None:
            joiner.abandon()

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
        if isinstance(message, SourceInfo) and message.incarnation in self.traffic:
            traffic = self.traffic[message.incarnation]
            traffic.groups = message.group_sizes
            traffic.members = tuple((entry.index, entry.group) for entry in message.stores)
        self._feed(Arrived(self._routing.known_here(message)))
