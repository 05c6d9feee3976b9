"""The source endpoint: registration at its stores, its stability window, its announcements.

    IDLE --start--> REGISTERING --complete--> ACTIVE --lost--> SUSPENDED --complete--> ACTIVE
                                        SUSPENDED --overtaken--> OVER     (a proxy: from ACTIVE, too)
    IDLE --start--> ACTIVE                                       (no stores configured: a streaming source, P-028)
    any --withdraw--> WITHDRAWING --left--> OVER

* `registration_set` decides when registration is complete. The first completion fixes the *resume point*: one above the
  consensus of the stores' newest numbers (T5). Later grants never move it. Stores learn it from the SRI and cut back
  what an older incarnation left above it.
* While too few stores count for the rules of the groups, sending is refused as unsafe (P-336).
* **Overtaken.** Another life may register meanwhile. If a store then counts more lives than it did, or knows a later
  one, this life is over, under `Repair.LEASE` (formal design, 7.6). Otherwise it goes on (`lineage`). It is also over
  when stores that had granted refuse it because another source holds the RegID, and too few other stores are left: it
  could only go on after a grant that counts the other life.
* **No vote.** A store that lost its memory has no vote about older lives (`registration_set`). While votes are missing
  the source names the stores that it waits for (`ballot`).
* An SRI goes out after every change (`transmission`); its version rises, as the version of that store does (P-222).
* A source with an `election` token is a proxy: it registers, announces and retransmits, and never sends data of its own
  (P-549, C-35). If it is refused, it waits and asks again.
* A source that withdrew drops what it is to send, and waits only for its stores (P-587).
"""

from enum import IntEnum
from typing import assert_never

import attrs

from stablecast.core.errors import ConfigError, MisuseError
from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Broadcast, Effect, Notify, SourceEffect
from stablecast.core.protocol.messages import Message, Registered
from stablecast.core.protocol.resume_point import offer
from stablecast.core.protocol.setting_relations import relations
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.registration.ballot import Ballot
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.source.lineage import Lineage
from stablecast.core.source.parts import agrees, ends, enrollment_of, offers_late_join, success, wants_every_group
from stablecast.core.source.retransmission import resend, send_range
from stablecast.core.source.stability import StabilityWindow
from stablecast.core.source.status import SourceStatus
from stablecast.core.source.transmission import Announcements, Transmission


class SourceState(IntEnum):
    """The source's right to send."""

    IDLE = 0
    REGISTERING = 1
    ACTIVE = 2
    SUSPENDED = 3
    OVER = 4
    WITHDRAWING = 5


class SourceStep(IntEnum):
    """The events that change the right to send."""

    START = 0
    COMPLETE = 1
    LOST = 2
    OVERTAKEN = 3
    WITHDRAW = 4
    LEFT = 5


class SourceChart(Chart):
    """The chart of a source's right to send."""

    states = States.from_enum(SourceState, initial=SourceState.IDLE, final=SourceState.OVER, use_enum_instance=True)

    start = states.IDLE.to(states.REGISTERING, cond="persistent", on="register") | states.IDLE.to(
        states.ACTIVE, unless="persistent", on="open"
    )
    complete = states.REGISTERING.to(states.ACTIVE, on=["resume", "report_complete"])
    complete |= states.SUSPENDED.to(states.ACTIVE, on=["renew_term", "report_complete"])
    lost = states.ACTIVE.to(states.SUSPENDED, on="report_lost")
    overtaken = states.OVER.from_(states.ACTIVE, states.SUSPENDED, on="report_overtaken")
    withdraw = states.WITHDRAWING.from_(
        states.IDLE, states.REGISTERING, states.ACTIVE, states.SUSPENDED, on="take_leave"
    )
    left = states.WITHDRAWING.to(states.OVER)


@attrs.define
class SourceEndpoint:
    """One life of one source on one topic. Driver contract: `stablecast.core` package docs."""

    config: SourceConfig
    enrollment: RegistrationSet
    sending: Transmission
    announcing: Announcements
    lineage: Lineage = attrs.field(factory=Lineage)
    ballot: Ballot = attrs.field(factory=Ballot)
    state: SourceState = SourceState.IDLE
    outbox: list[Effect] = attrs.field(factory=list, eq=False)

    @classmethod
    def create(cls, config: SourceConfig) -> "SourceEndpoint":
        """Return a source that has not started. Raises ConfigError for a fatal finding (`relations`)."""
        fatal = [finding.text for finding in relations(config) if finding.fatal]
        if fatal:
            raise ConfigError("; ".join(fatal))
        enrollment = enrollment_of(config)
        return cls(config, enrollment, Transmission.create(config, enrollment.quorums), Announcements(config))

    # The machine contract.

    def receive(self, event: inputs.SourceInput, now: int) -> None:
        """Feed one input. Raises MisuseError if the driver sent without a grant.

        Credit granted before a quorum was lost may still be reported as sent afterwards.
        """
        if self.state is SourceState.OVER:
            return
        self.sending.window.now = now
        match event:
            case inputs.Arrived():
                self._on_message(event.message, now)
            case inputs.Sent():
                self._on_sent(event, now)
            case inputs.Tick():
                self.handle_timeout(now)
            case inputs.Reset() | inputs.Gone():
                self.enrollment.on_broken(event, now, self.outbox)
                self._review(now)
            case inputs.Blocked():
                self.sending.on_blocked(event.count, event.payload_bytes, self.outbox)
            case inputs.Located():
                self._on_located(event, now)
            case inputs.Moved():
                self._on_moved(event, now)
            case inputs.Departed():
                self.sending.liveness.on_departed(event.context, self.outbox)
            case inputs.Withdraw():
                fire(SOURCE, self, SourceStep.WITHDRAW, now)
                self._review(now)
            case inputs.Held():
                pass  # The machine needs nothing of it; it stands in the trace for those who judge why a source waits.
            case inputs.Start():
                fire(SOURCE, self, SourceStep.START, now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        if self.state is SourceState.OVER:
            return
        self.window.now = now
        self.enrollment.handle_timeout(now, self.outbox)
        self.sending.handle_timeout(self.enrollment, now, self.outbox)
        self._review(now)
        self._announce(now)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        if self.state is SourceState.OVER:
            return None
        # Drivers ask after each input, so this builds no lists.
        due = self.enrollment.next()
        for deadline in (self.sending.next(), self.announcing.due):
            if deadline is not None and (due is None or deadline < due):
                due = deadline
        return due

    def take_effects(self) -> list[SourceEffect]:
        """Return the effects to perform, in order, and empty the outbox."""
        effects: list[SourceEffect] = self.outbox  # type: ignore[assignment] # this machine has no other effects
        self.outbox = []
        return effects

    # The read API (`status` for more, off the data path).

    @property
    def window(self) -> StabilityWindow:
        """The messages sent and not released; a part, for the core."""
        return self.sending.window

    @property
    def resume_point(self) -> int:
        """The first number of this life."""
        return self.lineage.resume_point

    @property
    def next_number(self) -> int:
        """The number of the next message to send."""
        return self.sending.window.next

    @property
    def oldest_number(self) -> int:
        """The oldest number that is retained; the next number when nothing is."""
        return self.sending.window.trail

    @property
    def stable_through(self) -> int:
        """The number up to which every message of this life is stable; one below its first when none is."""
        return self.window.stable.contiguous_from(self.window.trail) - 1

    @property
    def in_flight_messages(self) -> int:
        """Messages that were sent and are not settled yet."""
        return self.sending.window.unsettled_messages

    @property
    def status(self) -> SourceStatus:
        """Read-only questions about what the source knows of its stores, lives and messages."""
        return SourceStatus(self.enrollment, self.lineage, self.sending)

    @property
    def can_send(self) -> bool:
        """True while enough stores are registered; a proxy never sends."""
        return self.state is SourceState.ACTIVE and self.config.election is None

    @property
    def credit_messages(self) -> int:
        """Messages that may be sent before the flight is full."""
        return self.sending.flight.credit_messages(self.window)

    @property
    def credit_bytes(self) -> int | None:
        """Payload bytes that may be sent before the flight is full; None without such a limit."""
        return self.sending.flight.credit_bytes(self.window)

    def check_size(self, payload_bytes: int) -> None:
        """Raise OversizeError for a message of this many bytes that could never be sent (T14)."""
        self.sending.flight.check_size(payload_bytes)

    def info(self) -> msg.SourceInfo:
        """Return the SRI as of now."""
        return self.announcing.info(self.enrollment, self.lineage, self.window.next - 1)

    # Inputs.

    def _on_sent(self, event: inputs.Sent, now: int) -> None:
        if self.state is SourceState.WITHDRAWING:
            return
        if self.state in (SourceState.IDLE, SourceState.REGISTERING):
            raise MisuseError("the source is not registered with enough stores")
        if self.config.election is not None:
            raise MisuseError("a proxy sends no data of its own")
        self.sending.on_sent(event, now, self.outbox)

    def _on_message(self, message: Message, now: int) -> None:
        if message.incarnation != self.config.incarnation:
            self._odd("late-message", f"{type(message).__name__} for incarnation {message.incarnation:#x}")
            return
        if self.state is SourceState.WITHDRAWING and not isinstance(message, msg.Deregistered):
            return
        match message:
            case msg.StableAck():
                self._on_stable(message, now)
            case Registered() | msg.Refused() | msg.Deregistered():
                self._on_answer(message, now)
            case msg.Keepalive():
                self.enrollment.on_keepalive(message, now, self.outbox)
                if self.config.groups.depends_on_active:
                    self._review(now)
            case msg.ConsumptionAck():
                self.sending.on_confirmed(message, now, self.outbox)
            case msg.ReceiverAlive():
                who = (message.receiver_reg_id, message.session_id, message.context)
                self.sending.liveness.on_alive(*who, now)
            case msg.RetransmitRequest():
                resend(message, self.window, offers_late_join(self.config), self.outbox)
            case msg.LateJoinRequest():
                stores = [registration.address for registration in self.enrollment.registrations.values()]
                send_range(message, self.window, stores, offers_late_join(self.config), self.outbox)
            case msg.SourceInfoRequest():
                if self.state is SourceState.ACTIVE:
                    self.outbox.append(Broadcast(self.info()))
            case _:
                self._odd("unexpected-message", f"{type(message).__name__} is not for this source")

    def _on_stable(self, ack: msg.StableAck, now: int) -> None:
        rotation = self.enrollment.rotation
        registration = self.enrollment.registrations.get(ack.store_index)
        if rotation is not None and registration is not None and ack.store_index != rotation.turn:
            return  # Nobody is sent to an earlier store, so what it alone has is not stable (P-505).
        if registration is not None and self._between_terms:
            registration.on_traffic(now)
        elif registration is not None and not self.lineage.proven(registration.granted):
            # The store knows this life at last. The renewal lets it prove under which term.
            registration.renew(now, self.outbox)
        elif registration is None or not self.sending.on_stable(ack, self.resume_point, self.outbox):
            self._odd("wild-ack", f"store {ack.store_index} acknowledged {ack.first}..{ack.last}, never sent")
        else:
            returned = registration.quiet
            registration.on_traffic(now)
            if returned:
                self._review(now)

    def _on_answer(self, answer: Registered | msg.Refused | msg.Deregistered, now: int) -> None:
        before = self.enrollment.granted(answer.store_index)
        registration = self.enrollment.on_answer(answer, now, self.outbox, self.window.next)
        if registration is None or not isinstance(answer, Registered):
            self._review(now)
            if isinstance(answer, msg.Refused) and self.state is SourceState.SUSPENDED and ends(self.config):
                self._judge_refusals(now)
            return
        returning = self.state is SourceState.SUSPENDED and ends(self.config)
        if (returning and self.lineage.succeeded(answer, before, self.enrollment.term)) or self._is_behind(answer):
            fire(SOURCE, self, SourceStep.OVERTAKEN, now)
            return
        self.enrollment.returning |= answer.old and wants_every_group(self.config, self.enrollment.quorums)
        announced = self.state is SourceState.ACTIVE
        newest = offer(answer, self.window.next)[1]
        if self.state is not SourceState.REGISTERING:
            # A store that restarted without its newest writes no longer bears them out.
            self.window.forget_store(answer.store_index, newest + 1)
        if before is None or (before.term >= self.enrollment.term and self.lineage.proven(before)):
            self.outbox.append(Notify(success(answer, registration, newest)))
        if (returning or self.state is SourceState.REGISTERING) and agrees(self.config):
            self.enrollment.agree(answer.term, now, self.outbox)
        self._review(now)
        if announced:
            self._change_info(now)

    def _on_located(self, event: inputs.Located, now: int) -> None:
        """Move the registrations of a store that was located (P-203, P-207). Raises MisuseError without an address."""
        if not event.address:
            raise MisuseError(f"store '{event.name}' cannot be located nowhere: say where it is")
        for index, registration in self.enrollment.registrations.items():
            before = registration.address
            if self.config.stores[index].name == event.name and before != event.address:
                registration.move(event.address, now, self.outbox)
                if before:
                    self.outbox.append(Notify(events.StoreMoved(event.name, before, event.address)))
        self._review(now)

    def _on_moved(self, event: inputs.Moved, now: int) -> None:
        """Register again from the new addresses, and announce them."""
        config = attrs.evolve(self.config, reply_to=event.reply_to, transport=event.transport)
        self.config = self.sending.config = self.announcing.config = config
        for registration in self.enrollment.registrations.values():
            registration.relocate(event.reply_to, event.transport, now, self.outbox)
        if self.state is SourceState.ACTIVE:
            self._change_info(now)
        self._review(now)

    # Rules.

    def _review(self, now: int) -> None:
        """Apply every rule that depends on the stores, after one granted, left or answered."""
        enrollment = self.enrollment
        if self.state is SourceState.WITHDRAWING:
            if enrollment.left:
                fire(SOURCE, self, SourceStep.LEFT, now)
        elif self.state is not SourceState.IDLE:
            enrollment.ask(now, self.outbox)
            self.sending.on_stores(enrollment, self.outbox)
            self._judge(now)

    def _judge(self, now: int) -> None:
        """Fire when registration becomes complete, or incomplete (T1, P-217, P-336)."""
        enrollment = self.enrollment
        if self.state is SourceState.ACTIVE and not enrollment.enough:
            fire(SOURCE, self, SourceStep.LOST, now)
        elif (self.state is SourceState.SUSPENDED and enrollment.agreed and self._heard_every_group) or (
            self.state is SourceState.REGISTERING and enrollment.complete
        ):
            fire(SOURCE, self, SourceStep.COMPLETE, now)
        elif self.state in (SourceState.SUSPENDED, SourceState.REGISTERING):
            self.ballot.review(enrollment, self.outbox)

    def _judge_refusals(self, now: int) -> None:
        # The holder of the RegID was counted, so a later grant would end this life, too. A proxy keeps asking (T23).
        if self.enrollment.replaced and self.config.election is None:
            fire(SOURCE, self, SourceStep.OVERTAKEN, now)

    def _is_behind(self, answer: Registered) -> bool:
        """Return whether a proxy still counts on a lease, and the source or another proxy has begun a life since.

        The source takes its RegID from a proxy at once (T23), so its proxy may learn of it by a grant alone.
        """
        proxy = self.config.election is not None and ends(self.config)
        return proxy and self.state is SourceState.ACTIVE and answer.lives_term > self.lineage.term

    @property
    def _between_terms(self) -> bool:  # A quorum does not know the newer term yet.
        return self.state is SourceState.SUSPENDED and self.enrollment.term > self.lineage.term

    @property
    def _heard_every_group(self) -> bool:
        """Return whether a life that was suspended asked enough groups to go on."""
        # A life that another one may have followed begins a newer term, so it needs what a beginning needs: the other
        # one may have made messages stable in a group that does not answer now (formal design, 7.2).
        enrollment = self.enrollment
        every = self._between_terms and wants_every_group(self.config, enrollment.quorums)
        return not every or enrollment.quorums.every_group(enrollment.settled)

    def _change_info(self, now: int) -> None:
        self.announcing.on_change(now)
        self._announce(now)

    def _announce(self, now: int) -> None:
        if self.announcing.take_due(now):
            self.outbox.append(Broadcast(self.info()))

    def _odd(self, code: str, text: str) -> None:
        self.outbox.append(Notify(events.Oddity(code, text)))

    # Guards and actions of the chart.

    def persistent(self, now: int) -> bool:
        """Return whether stores are configured."""
        return bool(self.enrollment)

    def register(self, now: int) -> None:
        """Ask every store at once."""
        self.enrollment.ask(now, self.outbox)
        self.enrollment.open(now + self.config.times.interval_ns)

    def open(self, now: int) -> None:
        """Let a streaming source send at once."""
        self._report_complete(events.RegistrationFlag.NONE)

    def resume(self, now: int) -> None:
        """Fix the resume point by consensus (T5, P-415)."""
        voters = self.enrollment.voters
        counting = self.enrollment.registrations.items()
        answers = [r.granted for index, r in sorted(counting) if voters >> index & 1 and r.granted is not None]
        self.lineage.founding = self.enrollment.founding
        self.lineage.begin(answers, self.config.incarnation, self.config.consensus, self.enrollment.quorums)
        self.window.begin(self.resume_point)

    def renew_term(self, now: int) -> None:
        """Adopt the newer term of stores that counted lives unknown to this one (formal design, 7.6)."""
        if self._between_terms:
            self.lineage.renew(self.enrollment.term)
            self.window.forget_acks()
            self.enrollment.prove(self.lineage.term, now, self.outbox)

    def report_complete(self, now: int) -> None:
        """Announce the source, then report that it may send and from which number."""
        self._change_info(now)
        self._report_complete(
            events.RegistrationFlag.NONE if self.enrollment.everyone else events.RegistrationFlag.QUORUM
        )

    def report_lost(self, now: int) -> None:
        """Stop announcing, and report that sending is refused until enough stores have answered."""
        self.announcing.stop()
        self.enrollment.recount(now, self.outbox)
        self.outbox.append(Notify(events.QuorumLost(len(self.enrollment.counting), self.enrollment.quorums.needed)))

    def report_overtaken(self, now: int) -> None:
        """Report that another life has replaced this one, and announce nothing more."""
        self.announcing.stop()
        self.outbox.append(Notify(events.Overtaken()))

    def take_leave(self, now: int) -> None:
        """Deregister everywhere, and stop everything else."""
        self.announcing.stop()
        self.sending.stop()
        self.enrollment.withdraw(now, self.outbox)

    def _report_complete(self, flags: events.RegistrationFlag) -> None:
        self.outbox.append(Notify(events.RegistrationComplete(self.window.next, flags)))


SOURCE = lower(
    SourceChart,
    SourceEndpoint,
    SourceState,
    SourceStep,
    ignore={SourceState.WITHDRAWING: (SourceStep.WITHDRAW,)},
    reject={
        state: set(SourceStep) - steps
        for state, steps in {
            SourceState.IDLE: {SourceStep.START, SourceStep.WITHDRAW},
            SourceState.REGISTERING: {SourceStep.COMPLETE, SourceStep.WITHDRAW},
            SourceState.ACTIVE: {SourceStep.LOST, SourceStep.OVERTAKEN, SourceStep.WITHDRAW},
            SourceState.SUSPENDED: {SourceStep.COMPLETE, SourceStep.OVERTAKEN, SourceStep.WITHDRAW},
            SourceState.WITHDRAWING: {SourceStep.LEFT, SourceStep.WITHDRAW},
            SourceState.OVER: set[SourceStep](),
        }.items()
    },
)
