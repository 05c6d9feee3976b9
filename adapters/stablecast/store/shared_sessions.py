"""Sessions over LBT-RM and LBT-RU that a store joins once, even if several of its sources share one."""

from collections.abc import Callable

import attrs

from stablecast.core.protocol.inputs import Lost
from stablecast.core.protocol.messages import Incarnation
from stablecast.runtime.reliable_joiner import ReliableJoiner
from stablecast.runtime.reliable_receivers import ReliableReceivers
from stablecast.runtime.source_strings import Where
from stablecast.runtime.stream import Item
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable.settings import ReceiverSettings
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

    def close(self) -> None:
        """Leave all sessions and close their sockets."""
        self._receivers.close()
