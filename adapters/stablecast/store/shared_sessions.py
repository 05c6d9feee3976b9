"""Sessions over LBT-RM and LBT-RU as a store hears them: joined once, whatever the number of sources that share one.

What arrives is handed to the source whose topic it is of, in one look; announcements are handed on once.
"""

from collections.abc import Callable

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


class Hearing:
    """Told what the sessions bring."""

    def __init__(
        self,
        on_run: Callable[[Incarnation, Run], None],
        on_announcement: Callable[[Message], None],
        on_lost: Callable[[Lost], None],
        on_ended: Callable[[Incarnation], None],
    ) -> None:
        """Of the life that sent it, of any life, of one that is named, and that a session is silent."""
        self.on_run = on_run
        self.on_announcement = on_announcement
        self.on_lost = on_lost
        self.on_ended = on_ended


class _Session:
    """One session and the lives that are heard on it, by topic index."""

    def __init__(self, hearing: Hearing) -> None:
        self.lives: dict[int, Incarnation] = {}
        self._hearing = hearing

    def arrived(self, _: int, items: list[Item]) -> None:
        for item in items:
            if not isinstance(item, Run):
                self._hearing.on_announcement(item)
            elif item.topic_index in self.lives:  # Other sources of the session have no store here.
                self._hearing.on_run(self.lives[item.topic_index], item)

    def lost(self, found: Lost) -> None:
        if self.lives.get(codec.split(found.session)[1]) == found.session:
            self._hearing.on_lost(found)

    def ended(self, _: bool) -> None:
        for incarnation in tuple(self.lives.values()):
            self._hearing.on_ended(incarnation)


class Seat:
    """One life's part in a session: what `Joiner` is to a TCP stream."""

    def __init__(self, joiner: ReliableJoiner, leave: Callable[[], None]) -> None:
        """A session that is joined; `leave` is called once."""
        self._joiner = joiner
        self._leave: Callable[[], None] | None = leave

    def pause(self) -> None:
        """Read no more for now; nobody else on the session hears anything either."""
        self._joiner.pause()

    def resume(self) -> None:
        """Read on."""
        self._joiner.resume()

    def abandon(self) -> None:
        """Leave; no callback tells of this life any more."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    async def close(self) -> None:
        """Leave."""
        self.abandon()


class Sessions:
    """The sessions that a store has joined."""

    def __init__(self, interface: str, hearing: Hearing) -> None:
        """None yet; groups are heard at `interface`."""
        self._receivers = ReliableReceivers(interface)
        self._hearing = hearing
        self._joined: dict[Where, tuple[_Session, ReliableJoiner]] = {}

    def join(self, where: Where, incarnation: Incarnation, settings: ReceiverSettings) -> Seat:
        """Hear one more life, with the settings of the first that was heard there. Raises PortError."""
        if where not in self._joined:
            session = _Session(self._hearing)
            heard = (session.arrived, session.lost, session.ended)
            joiner = ReliableJoiner(self._receivers, where, settings, *heard, patient=True)
            self._joined[where] = session, joiner
        session, joiner = self._joined[where]
        index = codec.split(incarnation)[1]
        session.lives[index] = incarnation

        def leave() -> None:
            if session.lives.get(index) == incarnation:
                del session.lives[index]
            if not session.lives and self._joined.pop(where, None) is not None:
                joiner.abandon()

        return Seat(joiner, leave)

    def all_statistics(self) -> dict[str, dict[str, int]]:
        """The counters of each session, by source string, and of how many sources it is heard."""
        found = self._receivers.all_statistics()
        for where, (session, _) in self._joined.items():
            found.get(f"receiver {where}", {}).update(joined=len(session.lives))
        return found

    def close(self) -> None:
        """Leave all."""
        self._receivers.close()
