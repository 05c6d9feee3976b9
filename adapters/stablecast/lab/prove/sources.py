"""A source as a number: the core's own endpoint, each state of each life kept once, each input taken once.

The configuration is the operator's where it decides what is safe: stores and groups, their rules, consensus, behaviour,
repairs. Time is not modelled: nobody waits longer than for an answer that does not come, what is stable is let go of at
once (the worst for stores that come late), and the source always asks for its RegID again.
"""

import attrs

from stablecast.core.protocol.effects import Notify, Resend, Send
from stablecast.core.protocol.events import Overtaken, QuorumLost, RegistrationComplete, Stable, StableFlag
from stablecast.core.protocol.inputs import SourceInput, Tick
from stablecast.core.protocol.messages import Incarnation, LateJoinInfo, Pace, Register, SourceInfo
from stablecast.core.protocol.settings import Notification, RegistrationTimes, Retention, SourceConfig, StoreSpec
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.lab.model.clone import clone
from stablecast.lab.prove.stores import LONG_NS, REG_ID

INTERVAL_NS = 1
WAITING = (RegistrationState.REGISTERING, RegistrationState.RENEWING, RegistrationState.UNRESPONSIVE)
BEGUN = (SourceState.ACTIVE, SourceState.SUSPENDED)
"""The states of a life that knows where it resumed."""
Told = Stable | RegistrationComplete | QuorumLost | Overtaken
"""What the application hears that counts here."""


def address(index: int) -> str:
    """Where a store is, here."""
    return f"store:{index + 1}"


def reduced(config: SourceConfig, flight: int) -> SourceConfig:
    """The operator's configuration without what needs time or bytes, with at most so many messages in flight.

    A store that is listed twice is one store here as well.
    """
    keys = [(store.address, store.name) for store in config.stores]
    return attrs.evolve(
        config,
        topic="topic",
        reply_to="source:1",
        transport="stream:1",
        stores=tuple(
            StoreSpec(address(keys.index(key)), REG_ID, store.group)
            for key, store in zip(keys, config.stores, strict=True)
        ),
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


@attrs.frozen
class View:
    """What others see of a source.

    `waits` are the stores that it has asked and has no answer from, with what it asks; `counting` those that are
    registered. `settled`: everything sent is stable. `info` is its SRI once it is active, without the stores. `begun`:
    it knows where it resumed, and still is; `over`: another life took its place. `lives` is the history that it tells.
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


@attrs.define
class Life:
    """One life of the source, and how late it is there (ns)."""

    endpoint: SourceEndpoint
    now: int = 0

    def look(self) -> "View":
        """What others see of it."""
        source = self.endpoint
        status = source.status
        known = status.registrations
        active = source.state is SourceState.ACTIVE
        over = source.state is SourceState.OVER
        return View(
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
        )

    def common(self) -> tuple[object, ...]:
        """What it knows beside its stores."""
        source = self.endpoint
        status = source.status
        registers = source.state is SourceState.REGISTERING
        waits = (status.returning, status.first_interval_over) if registers else ()
        turn = -1 if status.turn is None else status.turn
        lives = (source.resume_point, status.term, status.proof, status.claim, status.lives)
        sent = (source.oldest_number, source.next_number, tuple(status.stable))
        return (source.config.incarnation, source.config.context, source.state, waits, turn, lives, sent)

    def of(self, index: int) -> tuple[object, ...]:
        """What it knows of one store; all of the grant decides as long as it registers, then its terms."""
        source, status = self.endpoint, self.endpoint.status
        registration = status.registrations.get(index)
        if registration is None:
            return ()
        granted = registration.granted
        shown = granted if source.state is SourceState.REGISTERING else None
        grant = () if shown is None else (shown.low, shown.high, shown.lives, shown.lives_term)
        terms = () if granted is None else (granted.term, index not in status.unproven)
        rotating = status.turn is not None
        place = (registration.state, registration.failing) if rotating else (registration.counts, registration.present)
        held = (tuple(status.acked[index]), tuple(status.lost[index]))
        return (place, terms, grant, held)


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
    views: list[View] = attrs.field(factory=list)
    numbers: dict[tuple[int, tuple[int, ...]], int] = attrs.field(factory=dict)
    taken: dict[tuple[int, SourceInput], Heard] = attrs.field(factory=dict)
    parts: list[tuple[int, tuple[int, ...]]] = attrs.field(factory=list)
    names: dict[tuple[object, ...], int] = attrs.field(factory=dict)

    def new(self, life: int, context: int = 0) -> int:
        """Return a life that begins; `context` is that of another life if one context has both, 0: its own."""
        config = attrs.evolve(self.config, incarnation=life, context=context or life)
        return self._number(Life(SourceEndpoint.create(config)))

    def generation(self, state: int, index: int) -> int:
        """That of the request to a store."""
        return self.states[state].endpoint.status.registrations[index].request.generation

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
                case Notify(event=RegistrationComplete() | QuorumLost() | Overtaken() as event_told):
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
            self.views.append(life.look())
            self.parts.append(parts)
        return number

    def _name(self, part: tuple[object, ...]) -> int:
        return self.names.setdefault(part, len(self.names))
