"""Drive a life of the source of a world.

The configuration is the operator's where it decides safety: stores and groups, rules, consensus, behaviour, repairs.
Time is not modelled. No process waits longer than for an answer that does not come. Stable messages are released at
once, the worst case for late stores. The source always requests its RegID again.
"""

from collections.abc import Mapping

import attrs

from stablecast.core.protocol.effects import Notify, Resend, Send
from stablecast.core.protocol.events import Overtaken, QuorumLost, RegistrationComplete, Stable, StableFlag
from stablecast.core.protocol.inputs import SourceInput, Tick
from stablecast.core.protocol.messages import Incarnation, LateJoinInfo, Pace, Register, SourceInfo
from stablecast.core.protocol.settings import Notification, Retention, SourceConfig, StoreSpec
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.lab.model.store_process import INTERVAL_NS, SOURCE_ID, store_address, untimed
from stablecast.lab.prove.endpoints import EndpointStates

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
    endpoint: SourceEndpoint
    now: int = 0

    def look(self) -> "SourceSummary":
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
class SourceStates(EndpointStates[SourceLife, SourceSummary, SourceInput, SourceReaction]):
    """Keep every state of a life by number, and the result of each input."""

    config: SourceConfig

    @classmethod
    def create(cls, config: SourceConfig, *, fine: bool = False) -> "SourceStates":
        return cls(config, places=len(config.stores), fine=fine)

    def new(self, life: int, context: int = 0) -> int:
        """Return a new life; `context` is that of another life if one context has both, 0: its own, at its address."""
        own = context or life
        config = attrs.evolve(self.config, incarnation=life, context=own, reply_to=f"source{own}:1")
        return self.number(SourceLife(SourceEndpoint.create(config)))

    def registrations(self, endpoint: SourceLife) -> Mapping[int, RegistrationStatus]:
        return endpoint.endpoint.status.registrations

    def perform(self, endpoint: SourceLife, step: SourceInput) -> SourceReaction:
        endpoint.now += INTERVAL_NS if isinstance(step, Tick) else 0
        endpoint.endpoint.receive(step, endpoint.now)
        answers: list[LateJoinInfo | Resend] = []
        told: list[Told] = []
        for effect in endpoint.endpoint.take_effects():
            match effect:
                case Resend():
                    answers.append(effect)
                case Send(message=LateJoinInfo() as info):
                    answers.append(info)
                case Notify(event=RegistrationComplete() | QuorumLost() | Overtaken() as event_told):
                    told.append(event_told)
                case Notify(event=Stable() as stable) if stable.flags & StableFlag.STABLE:
                    told.append(stable)
        return SourceReaction(self.number(endpoint), tuple(answers), tuple(told))
