"""Represent a source by a number: each state of the core's endpoint is kept once, and each input performed once.

The configuration is the operator's where it decides safety: stores and groups, rules, consensus, behaviour, repairs.
Time is not modelled. No process waits longer than for an answer that does not come. Stable messages are released at
once, the worst case for late stores. The source always requests its RegID again.
"""

import attrs

from stablecast.core.protocol.effects import Notify, Resend, Send
from stablecast.core.protocol.events import Overtaken, QuorumLost, RegistrationComplete, Stable, StableFlag
from stablecast.core.protocol.inputs import SourceInput, Tick
from stablecast.core.protocol.messages import Incarnation, LateJoinInfo, Pace, Register, SourceInfo
from stablecast.core.protocol.settings import Notification, Retention, SourceConfig, StoreSpec
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.lab.model.clone import clone
from stablecast.lab.model.store_process import INTERVAL_NS, SOURCE_ID, store_address, untimed

WAITING = (RegistrationState.REGISTERING, RegistrationState.RENEWING, RegistrationState.UNRESPONSIVE)
BEGUN = (SourceState.ACTIVE, SourceState.SUSPENDED)
"""States of a life that knows where it resumed."""
Told = Stable | RegistrationComplete | QuorumLost | Overtaken
"""Reports to the application that matter here."""


def reduced(config: SourceConfig, flight: int) -> SourceConfig:
    """Return the operator's configuration without times and bytes, with at most `flight` messages in flight.

    A store that is listed twice is one store here as well.
    """
    keys = [(store.address, store.name) for store in config.stores]
    return attrs.evolve(
        untimed(config),
        topic="topic",
        reply_to="",  # Each context has its own.
        transport="stream:1",
        stores=tuple(
            StoreSpec(store_address(keys.index(key)), SOURCE_ID, store.group)
            for key, store in zip(keys, config.stores, strict=True)
        ),
        session_id=0,
        flight_messages=min(flight, config.flight_messages),
        flight_bytes=0,
        retention=Retention(),
        confirmations=False,
        stable_notification=Notification.FRAGMENTS,
        liveness_ns=0,
        pace=Pace.SOURCE,
        wants_proxy=False,
    )


@attrs.frozen
class SourceSummary:
    """Summarize a source for other parts.

    `waits` are the stores that have not answered, with the request; `counting` the registered ones. `settled` means
    that everything sent is stable. `info` is the SRI of an active source, without the stores. `begun` means that the
    source knows where it resumed, and `over` that another life replaced it. `lives` is its history.
    `oldest` is the first number that it retains, and `acked` the numbers that each store acknowledged.
    """

    life: int
    context: int
    begun: bool
    over: bool
    active: bool
    may_send: bool
    settled: bool
    resume_point: int
    next: int
    waits: tuple[tuple[int, Register], ...]
    counting: tuple[int, ...]
    info: SourceInfo | None
    lives: tuple[tuple[Incarnation, int], ...]
    oldest: int
    acked: tuple[tuple[int, ...], ...]


@attrs.define
class SourceLife:
    """Hold one life of the source, and its time in ns."""

    endpoint: SourceEndpoint
    now: int = 0

    def look(self) -> "SourceSummary":
        """Return the summary for other parts."""
        source = self.endpoint
        status = source.status
        known = status.registrations
        active = source.state is SourceState.ACTIVE
        over = source.state is SourceState.OVER
        return SourceSummary(
            source.config.incarnation,
            source.config.context,
            source.state in BEGUN,
            over,
            active,
            source.can_send and source.credit_messages > 0,
            source.in_flight_messages == 0,
            source.resume_point,
            source.next_number,
            tuple(
                (index, attrs.evolve(registration.request, store_index=0, generation=0))
                for index, registration in sorted(known.items())
                if registration.state in WAITING and not over
            ),
            tuple(index for index, registration in sorted(known.items()) if registration.present and not over),
            attrs.evolve(source.info(), version=0, stores=()) if active else None,
            status.lives,
            source.oldest_number,
            tuple(tuple(number for first, stop in held for number in range(first, stop)) for held in status.acked),
        )

    def common(self) -> tuple[object, ...]:
        """Return what the life knows beside its stores."""
        source = self.endpoint
        status = source.status
        registers = source.state is SourceState.REGISTERING
        waits = (status.returning, status.first_interval_over) if registers else ()
        turn = -1 if status.turn is None else status.turn
        lives = (source.resume_point, status.term, status.proof, status.claim, status.lives)
        sent = (source.oldest_number, source.next_number, tuple(status.stable))
        return (source.config.incarnation, source.config.context, source.state, waits, turn, lives, sent)

    def of(self, index: int) -> tuple[object, ...]:
        """Return what the life knows of one store.

        While the life registers, all of the grant matters, and later only its terms.
        """
        source, status = self.endpoint, self.endpoint.status
        registration = status.registrations.get(index)
        if registration is None:
            return ()
        granted = registration.granted
        shown = granted if source.state is SourceState.REGISTERING else None
        grant = () if shown is None else (shown.low, shown.high, shown.lives, shown.lives_term, shown.known)
        terms = () if granted is None else (granted.term, index not in status.unproven, granted.memory)
        rotating = status.turn is not None
        place = (registration.state, registration.failing) if rotating else (registration.counts, registration.present)
        held = (tuple(status.acked[index]), tuple(status.lost[index]))
        known = source.enrollment.registrations[index]
        return (place, terms, grant, held, known.refused, known.passed_over, known.replaced)


@attrs.frozen
class SourceReaction:
    """Hold the result of an input: the state, answers to a store that asked, and reports to the application."""

    state: int
    answers: tuple[LateJoinInfo | Resend, ...]
    told: tuple[Told, ...]


@attrs.define
class SourceStates:
    """Keep every state of a life by number, and the result of each input.

    `parts` are the general knowledge of a state and that of each store, by the number in `names`.
    If `fine`, `twins` are endpoints that came to a known state in another way.
    """

    config: SourceConfig
    states: list[SourceLife] = attrs.field(factory=list)
    views: list[SourceSummary] = attrs.field(factory=list)
    numbers: dict[tuple[int, tuple[int, ...]], int] = attrs.field(factory=dict)
    taken: dict[tuple[int, SourceInput], SourceReaction] = attrs.field(factory=dict)
    parts: list[tuple[int, tuple[int, ...]]] = attrs.field(factory=list)
    names: dict[tuple[object, ...], int] = attrs.field(factory=dict)
    fine: bool = False
    twins: dict[int, SourceLife] = attrs.field(factory=dict)

    def new(self, life: int, context: int = 0) -> int:
        """Return a new life; `context` is that of another life if one context has both, 0: its own, at its address."""
        own = context or life
        config = attrs.evolve(self.config, incarnation=life, context=own, reply_to=f"source{own}:1")
        return self._number(SourceLife(SourceEndpoint.create(config)))

    def generation(self, state: int, index: int) -> int:
        """Return the generation of the request to a store."""
        return self.states[state].endpoint.status.registrations[index].request.generation

    def hear(self, state: int, event: SourceInput) -> SourceReaction:
        """Return the result of an input."""
        known = self.taken.get((state, event))
        if known is None:
            known = self.taken[state, event] = self.perform(clone(self.states[state]), event)
        return known

    def perform(self, life: SourceLife, event: SourceInput) -> SourceReaction:
        """Perform an input with a machine, which changes."""
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
                case Notify(event=RegistrationComplete() | QuorumLost() | Overtaken() as event_told):
                    told.append(event_told)
                case Notify(event=Stable() as stable) if stable.flags & StableFlag.STABLE:
                    told.append(stable)
        return SourceReaction(self._number(life), tuple(answers), tuple(told))

    def _number(self, life: SourceLife) -> int:
        each = tuple(self._name(life.of(index)) for index in range(len(self.config.stores)))
        parts = (self._name(life.common()), each)
        number = self.numbers.setdefault(parts, len(self.states))
        if number == len(self.states):
            self.states.append(life)
            self.views.append(life.look())
            self.parts.append(parts)
        elif self.fine:
            self.twins.setdefault(number, life)
        return number

    def _name(self, part: tuple[object, ...]) -> int:
        return self.names.setdefault(part, len(self.names))
