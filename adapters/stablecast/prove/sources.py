"""A source as a number: the core's own endpoint, each state of each life kept once, each input taken once.

The configuration is the operator's where it decides what is safe: stores and groups, their rules, consensus, behaviour,
repairs. Time is not modelled: nobody waits longer than for an answer that does not come, what is stable is let go of at
once (the worst for stores that come late), and the source always asks for its RegID again.
"""

import attrs

from stablecast.core.effects import Notify, Resend, Send
from stablecast.core.events import QuorumLost, RegistrationComplete, Stable, StableFlag
from stablecast.core.inputs import SourceInput, Tick
from stablecast.core.messages import LateJoinInfo, Pace
from stablecast.core.registration import Registration, RegistrationState, RegistrationTimes
from stablecast.core.settings import Notification, SourceConfig, StoreSpec
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.stability import Retention
from stablecast.model.clone import clone
from stablecast.prove.stores import LONG_NS, REG_ID

INTERVAL_NS = 1
WAITING = (RegistrationState.REGISTERING, RegistrationState.RENEWING, RegistrationState.UNRESPONSIVE)
Told = Stable | RegistrationComplete | QuorumLost
"""What the application hears that counts here."""


def address(index: int) -> str:
    """Where a store is, here."""
    return f"store:{index + 1}"


def reduced(config: SourceConfig, flight: int) -> SourceConfig:
    """The operator's configuration without what needs time or bytes, with at most so many messages in flight."""
    return attrs.evolve(
        config,
        topic="topic",
        reply_to="source:1",
        transport="stream:1",
        stores=tuple(StoreSpec(address(index), REG_ID, store.group) for index, store in enumerate(config.stores)),
        session_id=0,
        times=RegistrationTimes(INTERVAL_NS, LONG_NS, LONG_NS),
        flight_messages=min(flight, config.flight_messages),
        flight_bytes=0,
        retention=Retention(),
        confirmations=False,
        stable_notification=Notification.FRAGMENTS,
        stability_timeout_ns=0,
        stability_lifetime_ns=0,
        check_ns=LONG_NS,
        sri_interval_ns=LONG_NS,
        sri_maximum=1,
        liveness_ns=0,
        pace=Pace.SOURCE,
        wants_proxy=False,
    )


@attrs.define
class Life:
    """One life of the source, and how late it is there (ns)."""

    endpoint: SourceEndpoint
    now: int = 0

    @property
    def active(self) -> bool:
        """Whether it may send."""
        return self.endpoint.state is SourceState.ACTIVE

    @property
    def next(self) -> int:
        """The number that is sent next."""
        return self.endpoint.window.next

    @property
    def settled(self) -> bool:
        """Whether everything sent is stable."""
        return self.endpoint.window.unsettled_messages == 0

    def registration(self, index: int) -> Registration | None:
        """The registration with a store; None for one that is passed over."""
        return self.endpoint.enrollment.registrations.get(index)

    def waits_for(self, index: int) -> bool:
        """Whether it has asked a store and has no answer."""
        registration = self.registration(index)
        return registration is not None and registration.state in WAITING

    def counts(self, index: int) -> bool:
        """Whether a store is registered."""
        registration = self.registration(index)
        return registration is not None and registration.present

    def common(self) -> tuple[object, ...]:
        """What it knows beside its stores."""
        source = self.endpoint
        lineage, enrollment, window = source.lineage, source.enrollment, source.window
        turn = -1 if enrollment.rotation is None else enrollment.rotation.turn
        waits = (enrollment.returning, enrollment.first_interval_over, turn)
        lives = (lineage.resume_point, lineage.born, lineage.term, tuple(lineage.lives))
        return (source.config.incarnation, source.state, *waits, lives, window.trail, window.next, tuple(window.stable))

    def of(self, index: int) -> tuple[object, ...]:
        """What it knows of one store; the grant decides as long as it registers."""
        registration, source = self.registration(index), self.endpoint
        if registration is None:
            return ()
        shown = registration.granted if source.state is SourceState.REGISTERING else None
        grant = () if shown is None else (shown.low, shown.high, shown.term, shown.lives, shown.lives_term)
        failing = registration.no_response_reported and source.enrollment.rotation is not None
        held = (tuple(source.window.acked[index]), tuple(source.window.lost[index]))
        return (registration.state, failing, grant, *held)


@attrs.frozen
class Heard:
    """What came of an input: the state, what the source answers a store that asked, what the application was told."""

    state: int
    answers: tuple[LateJoinInfo | Resend, ...]
    told: tuple[Told, ...]


@attrs.define
class Sources:
    """Every state that a life of the source was seen in, by number, and what came of each input there.

    `parts` are what it knows in general and of each store, by the number in `names`.
    """

    config: SourceConfig
    states: list[Life] = attrs.field(factory=list)
    numbers: dict[tuple[int, tuple[int, ...]], int] = attrs.field(factory=dict)
    taken: dict[tuple[int, SourceInput], Heard] = attrs.field(factory=dict)
    parts: list[tuple[int, tuple[int, ...]]] = attrs.field(factory=list)
    names: dict[tuple[object, ...], int] = attrs.field(factory=dict)

    def new(self, life: int) -> int:
        """A life that begins."""
        return self._number(Life(SourceEndpoint.create(attrs.evolve(self.config, incarnation=life))))

    def hear(self, state: int, event: SourceInput) -> Heard:
        """What comes of an input."""
        known = self.taken.get((state, event))
        if known is None:
            known = self.taken[state, event] = self._hear(clone(self.states[state]), event)
        return known

    def _hear(self, life: Life, event: SourceInput) -> Heard:
        life.now += INTERVAL_NS if isinstance(event, Tick) else 0
        life.endpoint.receive(event, life.now)
        answers: list[LateJoinInfo | Resend] = []
        told: list[Told] = []
        for effect in life.endpoint.take_effects():
            match effect:
                case Resend():
                    answers.append(effect)
                case Send(message=LateJoinInfo() as info):
                    answers.append(info)
                case Notify(event=RegistrationComplete() | QuorumLost() as event_told):
                    told.append(event_told)
                case Notify(event=Stable() as stable) if stable.flags & StableFlag.STABLE:
                    told.append(stable)
        return Heard(self._number(life), tuple(answers), tuple(told))

    def _number(self, life: Life) -> int:
        each = tuple(self._name(life.of(index)) for index in range(len(self.config.stores)))
        parts = (self._name(life.common()), each)
        number = self.numbers.setdefault(parts, len(self.states))
        if number == len(self.states):
            self.states.append(life)
            self.parts.append(parts)
        return number

    def _name(self, part: tuple[object, ...]) -> int:
        return self.names.setdefault(part, len(self.names))
