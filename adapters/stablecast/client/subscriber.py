"""What drives a subscription (`stablecast.core.subscription`): streams and sessions, for the client and for simulators.

The machine decides which streams are joined, which sessions begin and end, and what they inherit. This driver passes
what arrives to the sessions, and tells the machine what becomes of them.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import attrs

from stablecast.client.batch import ArrivalTime, Batch
from stablecast.client.hop_names import Hop, HopNames
from stablecast.client.inbox import Inbox
from stablecast.client.session import ClientSession
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.events import EndOfSource, Event
from stablecast.core.protocol.inputs import Gone, Lost, Reset
from stablecast.core.protocol.messages import Incarnation, SourceInfo
from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.core.subscription import effects as fx
from stablecast.core.subscription import inputs as ev
from stablecast.core.subscription.consumption import ReceiverMemory
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.subscription import Subscription
from stablecast.runtime.source_strings import source_string
from stablecast.transports import codec
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire.errors import WireError

MAX_EARLY = 256
"""Runs that are kept until their source announces itself. Beyond that, the oldest are lost."""

MAX_EARLY_BYTES = 8 * 1024 * 1024
"""Bytes of those runs: one read of the transport fits."""


@attrs.define
class EarlyRuns:
    """Runs that came before the announcement of their source, by its name on their hop; `size` is their bytes.

    Datagrams carry both, so a run may overtake the announcement. The oldest run is the first.
    """

    runs: deque[tuple[Hop, Run]] = attrs.field(factory=deque)
    size: int = 0

    def keep(self, hop: Hop, run: Run) -> None:
        """Keep a copy of a run, because a slice of a read would keep the whole read in memory."""
        self.runs.append((hop, attrs.evolve(run, block=bytes(run.block))))
        self.size += len(run.block)
        while len(self.runs) > MAX_EARLY or self.size > MAX_EARLY_BYTES:
            self.size -= len(self.runs.popleft()[1].block)

    def remove(self, hop: Hop) -> list[Run]:
        """Remove the runs with a name and return them in order."""
        removed = [run for kept, run in self.runs if kept == hop]
        if removed:
            self.runs = deque(kept for kept in self.runs if kept[0] != hop)
            self.size -= sum(len(run.block) for run in removed)
        return removed


SessionT = TypeVar("SessionT", bound=ClientSession)


class Subscriber(ABC, Generic[SessionT]):
    """The sessions of one receiver, by its subscription.

    Attributes:
        topic: The topic of all sessions.
        arrival: The time of the newest read from the network.
        subscription: The machine.
        names: The lives behind the names that streams carry.
    """

    topic: str
    inbox: Inbox[Batch]
    arrival: ArrivalTime

    def _follow(self, memory: ReceiverMemory, clock: Callable[[], int]) -> None:
        """Begin with what was read before in this run; `clock` returns the time of an arrival in ns."""
        self.subscription = Subscription(memory)
        self.names = HopNames()
        self._sessions: dict[Incarnation, SessionT] = {}
        self._heard: dict[Hop, SessionT] = {}
        self._finished: list[SessionT] = []
        self._joiners: dict[str, Any] = {}
        self._early = EarlyRuns()
        self._clock = clock
        self._paused = self._closed = False
        self._feed_machine = self._drive(self.subscription)

    # ------------------------------------------------------------------------------------------- what a receiver adds

    @abstractmethod
    def _drive(self, machine: Subscription) -> Callable[[ev.SubscriptionInput], None]:
        """Drive the machine, and return what feeds it."""

    @abstractmethod
    def _make(self, info: SourceInfo, place: Place) -> SessionT:
        """Make the session with a life. Raises StablecastError."""

    @abstractmethod
    def _open(self, place: Place, items: Callable[[int, Any], None], ended: Callable[[bool], None]) -> Any:
        """Join a stream: pass its items to `items`, and each end to `ended`. Raises StablecastError."""

    @abstractmethod
    def _refused(self, place: Place | None, error: StablecastError) -> None:
        """Report that a stream could not be joined; without a place: that a session could not be made."""

    @abstractmethod
    def _owners(self) -> Iterable[SessionT]:
        """Return the sessions of this receiver whose messages wait or are in hand."""

    @abstractmethod
    def on_notify(self, event: Event, source: str = "") -> None:
        """Report an event to the application."""

    def _decode(self, item: Any) -> object:
        """Return the message of an item that is no run. Raises WireError."""
        return item

    def _accepts(self, _: SourceInfo) -> bool:
        """Return whether a life may get a session."""
        return True

    def _count(self, oddity: str) -> None:
        """Count a malformed or unexpected input."""

    def _pause(self) -> None:
        """Read no stream until the inbox has room."""

    # ----------------------------------------------------------------------------------------------------- the machine

    def feed(self, event: ev.SubscriptionInput) -> None:
        """Feed one input to the machine, and perform what follows."""
        self._feed_machine(event)
        self._settle()

    def _settle(self) -> None:
        """Report the ended sessions that may be closed."""
        settled = tuple(session for session in self._finished if session.settled)
        if settled:
            self._feed_machine(ev.Settled(settled))

    def _perform(self, effect: fx.SubscriptionEffect) -> None:
        match effect:
            case fx.Inform(session=session):
                if session.transport != effect.transport:
                    self._silence(session.incarnation)
                    session.move(effect.transport)
                session.on_message(effect.info)
                hop = self.names.hop(session.transport, session.incarnation)
                for run in self._early.remove(hop):
                    self._hear(hop, run)
            case fx.JoinStream():
                self._join(effect)
            case fx.LeaveStream():
                self._joiners.pop(effect.transport).abandon()
            case fx.BeginSession():
                self._begin(effect)
            case fx.StartSession(session=session):
                self._sessions[session.incarnation] = session
                self._silence(session.incarnation)
                session.start(effect.history, effect.earlier, effect.confirmed)
            case fx.EndSession(session=session):
                self._finished.append(self._sessions.pop(session.incarnation))
                self._silence(session.incarnation)
                self.on_notify(EndOfSource(self.topic, source_string(session.transport)), session.transport)
                self.feed(ev.SessionEnded(session, session.end()))
            case fx.CloseSession(session=session):
                if session in self._finished:
                    self._finished.remove(session)
                session.close()  # It confirms its last messages, and the next session of the life repeats them.
                self._feed_machine(ev.Remember(_report(session)))
            case fx.Foreign():
                self._count("foreign-source-on-stream")

    def _join(self, effect: fx.JoinStream) -> None:
        transport = effect.place.transport

        def ended(gone: bool) -> None:
            if gone:
                self._gone(transport)

        if transport not in self._joiners:
            try:
                joiner = self._open(effect.place, partial(self._on_stream, effect.place), ended)
            except StablecastError as error:
                self._refused(effect.place, error)
                self._feed_machine(ev.StreamEnded(transport, failed=True))
                return
            self._joiners[transport] = joiner
            if self._paused:
                joiner.pause()
        for life in effect.lives:
            self._joiners[transport].claim(codec.split(self.names.hop(transport, life))[1])

    def _gone(self, transport: str) -> None:
        self._joiners.pop(transport, None)
        self.feed(ev.StreamEnded(transport))

    def _begin(self, effect: fx.BeginSession) -> None:
        life = effect.info.incarnation
        try:
            # Descriptors or room on the disk may be scarce just now. That must not end a receiver that works.
            session = self._make(effect.info, effect.place)
        except StablecastError as error:
            self._refused(None, error)
            self._feed_machine(ev.Begun(life, None))
            return
        before = dict.fromkeys((*self._owners(), *self._finished, *self._sessions.values()))
        self._feed_machine(ev.Begun(life, session, tuple(map(_report, before))))

    # -------------------------------------------------------------------------------------------------------- arrivals

    def _on_stream(self, place: Place, session_id: int, items: Sequence[Any]) -> None:
        self.arrival.ns = self._clock()
        for item in items:
            if isinstance(item, Run):
                hop = session_id << TOPIC_BITS | item.topic_index
                session = self._heard.get(hop)
                if session is None:
                    self._hear(hop, item)
                else:
                    session.on_run(item)
                continue
            try:
                message = self._decode(item)
            except WireError:
                self._count("malformed-on-stream")
                continue
            if isinstance(message, SourceInfo) and message.topic == self.topic:
                self._on_info(message, session_id, place)
        if self.inbox.full and not self._paused:
            self._pause()

    def _hear(self, hop: Hop, run: Run) -> None:
        """Pass a run to the session that hears this name from now on, or keep it until there is one.

        A life is heard at one place at a time. Where it goes on, that is from its first announcement there.
        """
        life = self.names.life(hop)
        session = self._sessions.get(life)
        if session is None or hop != self.names.hop(session.transport, life):
            self._early.keep(hop, run)
            return
        if hop not in self._heard:
            self._heard[hop] = session
            session.go_on(run)
        session.on_run(run)

    def _silence(self, life: Incarnation) -> None:
        """Let no session hear what a life sends, until a run comes from the place where it goes on."""
        self._heard = {hop: session for hop, session in self._heard.items() if session.incarnation != life}

    def _on_info(self, info: SourceInfo, session_id: int, place: Place) -> None:
        """Process the announcement of a life, which has its name on the hop."""
        hop, life = info.incarnation, self.names.life(info.incarnation)
        known = life in self._sessions
        if not known and codec.split(hop)[0] != session_id:
            self._count("foreign-source-on-stream")
        elif known or self._accepts(info):
            self.feed(ev.Announced(info if hop == life else attrs.evolve(info, incarnation=life), place))

    def on_stored(self, info: SourceInfo) -> None:
        """Begin a session with a source that only stores know, unless a source has announced itself."""
        if info.incarnation in self._sessions or self._accepts(info):
            place = f"stored:{info.incarnation:016x}"
            self.feed(ev.Announced(info, Place(place, request=info.request, stored=True)))

    def _on_lost(self, lost: Lost) -> None:
        life = self.names.life(lost.session)
        session = self._sessions.get(life)
        if session is not None and lost.session == self.names.hop(session.transport, life):
            session.miss(lost if life == lost.session else attrs.evolve(lost, session=life))

    def on_control(self, message: ControlMessage) -> None:
        """Pass a control message from the request port to its session."""
        for session in self._of(message.incarnation):
            session.on_message(message)

    def on_recovered(self, incarnation: Incarnation, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        """Pass retransmissions from the request port to their session."""
        self.arrival.ns = self._clock()
        for session in self._of(incarnation):
            session.on_recovered(messages)

    def on_broken(self, event: Reset | Gone) -> None:
        """Notify all sessions that a store's connection broke."""
        for session in self.every_session:
            session.receive(event)

    def on_consumed(self, session: ClientSession) -> None:
        """Join waiting lives if the application has consumed all messages of the last ended session."""
        if self._closed or session not in self._finished:
            # It was given up while its messages waited: no other call remembers what was consumed since.
            self._feed_machine(ev.Remember(_report(session)))
        else:
            self._settle()

    def on_inherited(self) -> None:
        """Close ended sessions whose messages another session now answers for."""
        self._settle()

    @property
    def every_session(self) -> list[SessionT]:
        """Return the sessions with a live stream, and those that recover or wait for the application."""
        return [*self._sessions.values(), *self._finished]

    def _of(self, incarnation: Incarnation) -> list[SessionT]:
        """Return the sessions with this life: usually one."""
        live = self._sessions.get(incarnation)
        return [session for session in self._finished if session.incarnation == incarnation] + ([live] if live else [])


def _report(session: ClientSession) -> ev.Report:
    history = session.history()
    answers, confirmed = session.succession.heir is None, session.confirmed
    return ev.Report(session, session.incarnation, session.info, history, answers, confirmed)
