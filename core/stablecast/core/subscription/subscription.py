"""A receiver's subscription to a topic: which lives of its sources it follows, and when one hands over to the next.

* When a life is over, its session recovers missing messages from the stores, and the application may still consume the
  delivered ones. The next life is joined once that is done, or after `DRAIN_NS`. Its session inherits what waits or is
  in hand (`succession`), so that the application gets each message once.
* A life that is earlier than one whose session goes on is passed over (`precedence`). When a session ends, its
  announcement counts again, no sooner than a new life would be joined. If the session had replaced others in vain, the
  same holds for their lives.
* A life whose end was reported is left after `FAREWELL_NS` without an announcement, because its last
  messages may have been lost and be on their way again.
* A life that another one replaced may come back: a process that was cut off lives on, and the stores take it back when
  the process that replaced it is gone. Its session delivers no more, so it gets a new one.
* A source that only stores know has a session until a source announces itself.

Driver contract: `stablecast.core` package docs. After each input the driver reports which ended sessions are settled.
"""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Incarnation, SourceInfo
from stablecast.core.subscription import effects as fx
from stablecast.core.subscription import inputs as ev
from stablecast.core.subscription.consumption import ReceiverMemory
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.precedence import PassedOver, outranks

DRAIN_NS = 1 * SECOND
"""Longest wait of a new life until an earlier life is recovered and consumed, in ns."""

REJOIN_NS = 200 * MILLISECOND
"""Wait before a place that was given by hand is joined again, in ns."""

RETRY_NS = 2 * SECOND
"""Wait before a stream that could not be joined is tried again, in ns. The resolver reports a source once."""

FAREWELL_NS = 1_500 * MILLISECOND
"""Silence after which a life is over whose end was reported, in ns. A source announces itself every half second."""

MAX_FINISHED = 16
"""Ended sessions that are not recovered or not consumed yet. Beyond that, the oldest is given up."""


@attrs.define(eq=False)
class Followed:
    """A life, its newest announcement, its place and its session.

    Attributes:
        session: None until the driver has made it.
        replaced: The sessions that it succeeds.
        heir: The life whose session succeeded this one; None: none did.
        before: The same life, when another one had replaced it; None: this is not a life that comes back.
        ending: Whether it has to say how it ended.
    """

    info: SourceInfo
    place: Place
    session: ev.Session = None
    replaced: tuple[ev.Session, ...] = ()
    heir: "Followed | None" = None
    before: "Followed | None" = None
    ending: bool = False

    def comes_back(self, info: SourceInfo) -> bool:
        """Return whether another life replaced this one, and `info` shows that this one is the later again."""
        last = self
        while last.heir is not None:
            last = last.heir
        return last is not self and outranks(info, last.info)


@attrs.define
class Subscription:
    """The lives that one receiver follows, will join, and has followed.

    Attributes:
        memory: What the receiver has read in this run.
        plans: The streams to join, each with the latest time in ns.
        joined: The streams that are joined.
        expected: The lives that were found on each stream.
        others: The place and the lives of another process that was found at the address of a stream: the old one is
            found there, too, until its lifetime is over.
        farewells: The lives whose end was reported: the stream, and the time in ns when it is left.
        rejoins: The places to find again, each with its time in ns.
        sessions: The lives that are followed.
        finished: The lives whose stream has ended, the oldest first.
        lost: The places of ended streams whose sources are not looked for yet.
    """

    memory: ReceiverMemory
    plans: dict[str, tuple[Place, int]] = attrs.field(factory=dict)
    joined: dict[str, Place] = attrs.field(factory=dict)
    expected: dict[str, set[Incarnation]] = attrs.field(factory=dict)
    others: dict[str, tuple[Place, set[Incarnation]]] = attrs.field(factory=dict)
    farewells: dict[Incarnation, tuple[str, int]] = attrs.field(factory=dict)
    rejoins: dict[Place, int] = attrs.field(factory=dict)
    passed_over: PassedOver = attrs.field(factory=PassedOver)
    sessions: dict[Incarnation, Followed] = attrs.field(factory=dict)
    finished: list[Followed] = attrs.field(factory=list)
    lost: list[str] = attrs.field(factory=list)
    retiring: bool = False
    closed: bool = False
    now: int = 0
    outbox: list[fx.SubscriptionEffect] = attrs.field(factory=list, eq=False)

    # The machine contract.

    def receive(self, event: ev.SubscriptionInput, now: int) -> None:
        self.now = now
        if isinstance(event, ev.Remember):
            self._remember(event.report)
        if self.closed:
            return
        match event:
            case ev.Announced():
                self._on_announced(event.info, event.place)
            case ev.Found():
                self._on_found(event.place, event.life)
            case ev.Withdrawn():
                self._on_withdrawn(event.transport, event.life)
            case ev.StreamEnded(failed=True):
                self._on_refused(event.transport)
            case ev.StreamEnded():
                self._on_stream_ended(event.transport)
            case ev.Begun():
                self._on_begun(event)
            case ev.SessionEnded():
                self._on_session_ended(event)
            case ev.Settled():
                for followed in [one for one in self.finished if one.session in event.sessions and not one.ending]:
                    self._close(followed)
            case ev.Retire():
                self.retiring = True
            case ev.Leave():
                self._on_leave()
        self._review()

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        self.now = now
        for transport in [transport for transport, (_, due) in self.plans.items() if due <= now]:
            self._join(transport)
        for life in [life for life, (_, due) in self.farewells.items() if due <= now]:
            self._bid_farewell(life, self.farewells.pop(life)[0])
        for place in [place for place, due in self.rejoins.items() if due <= now]:
            del self.rejoins[place]
            self._on_found(place, None)
        self._review()

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        dues = [due for _, due in (*self.plans.values(), *self.farewells.values())]
        return min([*dues, *self.rejoins.values()], default=None)

    def take_effects(self) -> list[fx.SubscriptionEffect]:
        """Return the effects to perform, in order, and empty the outbox."""
        effects, self.outbox = self.outbox, []
        return effects

    # Streams.

    def _on_found(self, place: Place, life: Incarnation | None) -> None:
        self.retiring = False
        if life is not None:
            self.expected.setdefault(place.transport, set()).add(life)
            self._note_other(place, life)
        if place.transport not in self.joined:
            self._plan(place)
        elif life is not None:
            self.outbox.append(fx.JoinStream(place, (life,)))

    def _note_other(self, place: Place, life: Incarnation) -> None:
        """Note that another process was found where a stream is joined, or will be."""
        planned, _ = self.plans.get(place.transport, (None, 0))
        current = self.joined.get(place.transport, planned)
        if current is None or place.shared or current.session_id == place.session_id:
            return
        other, lives = self.others.get(place.transport, (place, set()))
        self.others[place.transport] = (place, {life, *lives} if other == place else {life})

    def _plan(self, place: Place) -> None:
        self.plans.setdefault(place.transport, (place, self.now + DRAIN_NS))

    def _join(self, transport: str) -> None:
        place, _ = self.plans.pop(transport)
        if transport in self.joined:
            for info, met in self.passed_over.remove(transport):
                self._on_announced(info, met)
        else:
            self.joined[transport] = place
            self.outbox.append(fx.JoinStream(place, tuple(sorted(self.expected.get(transport, ())))))

    def _on_refused(self, transport: str) -> None:
        """Try again later: descriptors, or memory, may be scarce just now."""
        place = self.joined.pop(transport, None)
        if place is not None and not place.static:
            self.rejoins[place] = self.now + RETRY_NS

    def _on_withdrawn(self, transport: str, life: Incarnation) -> None:
        if transport in self.joined:
            self._delay_farewell(life, transport)
        elif transport in self.plans:
            self.expected.get(transport, set()).discard(life)
            if not self.expected.get(transport):
                del self.plans[transport]
                self.others.pop(transport, None)
        else:
            for place in [place for place in self.rejoins if place.transport == transport and not place.static]:
                del self.rejoins[place]

    def _delay_farewell(self, life: Incarnation, transport: str) -> None:
        self.farewells[life] = (transport, self.now + FAREWELL_NS)

    def _bid_farewell(self, life: Incarnation, transport: str) -> None:
        """End the session of a life, and leave its stream unless another source of this topic sends on it."""
        if transport not in self.joined:
            return
        followed, expected = self.sessions.get(life), self.expected.get(transport, set())
        expected.discard(life)
        if not expected and all(one is followed for one in self._on(transport)):
            self.outbox.append(fx.LeaveStream(transport))
            self._on_stream_ended(transport)
        elif followed is not None:
            self._end(followed)

    def _on_stream_ended(self, transport: str) -> None:
        """End the sessions of a stream. They may still recover, and their messages may be consumed."""
        place = self.joined.pop(transport, None)
        self.expected.pop(transport, None)
        if self.passed_over.remove(transport):
            self.plans.pop(transport, None)
        for followed in self._on(transport):
            self._end(followed)
        for other in self.passed_over.places().values():
            self._plan(other)
        if place is not None and place.static:
            self.others.pop(transport, None)
            self.rejoins[place] = self.now + REJOIN_NS
        elif not self._plan_other(transport):
            self.lost.append(transport)

    def _plan_other(self, transport: str) -> bool:
        """Plan to join the other process that was found at the address of a stream, which is over.

        Whoever is looked for again may be the process that ended, time after time.
        """
        other, lives = self.others.pop(transport, (None, set()))
        if other is not None:
            self.expected[transport] = lives
            self._plan(other)
        return other is not None

    def _on(self, transport: str) -> list[Followed]:
        return [followed for followed in self.sessions.values() if followed.place.transport == transport]

    # Lives.

    def _on_announced(self, info: SourceInfo, place: Place) -> None:
        life, transport = info.incarnation, place.transport
        if place.stored:
            if not all(followed.place.stored for followed in self.sessions.values()):
                return  # A source runs, so what the stores say is over.
            self.lost.append(transport)
        if life in self.farewells:
            self._delay_farewell(life, transport)
        followed = self.sessions.get(life)
        if followed is None or followed.comes_back(info):
            self._meet(info, place, followed)
        elif followed.session is not None:
            left = followed.place.transport
            followed.place = place
            if info.version >= followed.info.version:
                followed.info = info
            self.outbox.append(fx.Inform(followed.session, info, followed.place.transport))
            if followed.place.transport != left:
                self._leave_last_place(life, left)

    def _leave_last_place(self, life: Incarnation, transport: str) -> None:
        """Leave the stream on which a life sent before it moved, unless another source of this topic sends on it."""
        self.farewells.pop(life, None)
        place, expected = self.joined.get(transport), self.expected.get(transport, set())
        expected.discard(life)
        if place is not None and not self._on(transport) and not (place.shared and expected):
            del self.joined[transport]
            self.expected.pop(transport, None)
            self.outbox.append(fx.LeaveStream(transport))
            self._plan_other(transport)

    def _meet(self, info: SourceInfo, place: Place, before: Followed | None) -> None:
        """Begin a session with a life, or pass it over; `before` is the life as it was replaced."""
        if not place.shared and any(one is not before for one in self._on(place.transport)):
            self.outbox.append(fx.Foreign())
            return
        waits = info.incarnation in self.passed_over and place.transport in self.plans
        if waits or any(outranks(followed.info, info) for followed in self.sessions.values()):
            self.passed_over.add(info, place)
            return
        self.passed_over.drop(info.incarnation)
        self.sessions[info.incarnation] = Followed(info, place, before=before)
        self.outbox.append(fx.BeginSession(info, place))

    def _on_begun(self, event: ev.Begun) -> None:
        """Start the session, which succeeds all sessions with its source."""
        begun = self.sessions[event.life]
        if event.session is None:
            del self.sessions[event.life]
            if begun.before is not None:
                self.sessions[event.life] = begun.before
            return
        begun.session = event.session
        if not begun.place.stored:
            for other in [one for one in self.sessions.values() if one.place.stored]:
                self._end(other)
        for report in event.reports:
            self._remember(report)
        if begun.before is not None:  # It acknowledges what it owes before the new session registers.
            self.outbox.append(fx.CloseSession(begun.before.session))
            begun.before = None
        identity = self.memory.identity
        related = identity.begin(begun.info, self.sessions)
        heirless = [report for report in event.reports if report.answers]
        begun.replaced = tuple(report.session for report in heirless if identity.same(report.life, event.life))
        for other in self.sessions.values():
            if other.session in begun.replaced:
                other.heir = begun
        history = self.memory.consumption.history(related)
        confirmed = self.memory.confirmed.history([event.life]).get(event.life, [])
        self.outbox.append(fx.StartSession(begun.session, history, begun.replaced, confirmed))
        self.outbox.append(fx.Inform(begun.session, begun.info, begun.place.transport))

    def _end(self, followed: Followed) -> None:
        del self.sessions[followed.info.incarnation]
        self.finished.append(followed)
        followed.ending = True
        self.outbox.append(fx.EndSession(followed.session))

    def _on_session_ended(self, event: ev.SessionEnded) -> None:
        """Follow the lives again that a session replaced in vain, because their streams are still joined.

        They may be the later ones: if two histories name no life in common, nobody can know that (`precedence`).
        """
        ended = next(one for one in self.finished if one.session == event.session)
        ended.ending = False
        for other in list(self.sessions.values()) if event.vain else ():
            if other.session in ended.replaced:
                self._end(other)
                self._plan(other.place)
                self.passed_over.add(other.info, other.place)

    def _close(self, followed: Followed) -> None:
        self.finished.remove(followed)
        self.outbox.append(fx.CloseSession(followed.session))

    def _remember(self, report: ev.Report) -> None:
        """Note the consumed messages, so that no later session delivers them again."""
        self.memory.identity.learn(report.info, report.history)
        self.memory.consumption.add(report.history)
        self.memory.confirmed.add({report.life: report.confirmed})

    def _review(self) -> None:
        """Join the lives that wait, if no ended session keeps them waiting."""
        if self.closed or any(followed.ending for followed in self.finished):
            return
        for followed in self.finished[: max(0, len(self.finished) - MAX_FINISHED)]:
            self._close(followed)
        for transport in list(self.plans) if not self.finished else ():
            self._join(transport)
        others = any(not followed.place.stored for followed in self.sessions.values())
        self.outbox += [fx.Look(transport, others) for transport in self.lost]
        self.lost = []
        if self.retiring and not (self.finished or self.joined or self.sessions):
            self.retiring = False
            self.outbox.append(fx.Retired())

    def _on_leave(self) -> None:
        self.closed = True
        self.outbox += [fx.LeaveStream(transport) for transport in self.joined]
        self.outbox += [fx.CloseSession(followed.session) for followed in (*self.sessions.values(), *self.finished)]
        for known in (self.plans, self.farewells, self.rejoins, self.joined, self.sessions):
            known.clear()
        self.finished = []
