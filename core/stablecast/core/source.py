"""The source endpoint: registration at its stores, its stability window, its announcements.

    IDLE --start--> REGISTERING --complete--> ACTIVE --lost--> SUSPENDED --complete--> ACTIVE
                                        SUSPENDED --overtaken--> OVER
    IDLE --start--> ACTIVE                                       (no stores configured: a streaming source, P-028)

* Registration is complete in the first interval only when *all* stores granted, from the second interval on when a
  quorum has (T1). The first completion fixes the *resume point*: one above the consensus of the stores' newest numbers
  (T5). Later grants never move it; stores learn it from the SRI and cut back what an older incarnation left above it.
* While fewer stores than a quorum count, sending is refused (P-336) and every send would be unsafe.
* **Overtaken.** Meanwhile another life may have registered. If a store that answers then tells of one we do not know,
  this life is over: stores would cut back what the other got stable if it announced itself again (formal design, 7.6).
* An SRI goes out after every change of registration, several times, at an interval (P-221); its version rises, and so
  does the version of the store concerned (P-222).
"""

from enum import IntEnum
from typing import assert_never

import attrs
from statemachine.states import States

from stablecast.core import serial
from stablecast.core.chart import Chart, fire, lower
from stablecast.core.effects import Broadcast, Effect, Notify, Resend, Send
from stablecast.core.enrollment import Enrollment
from stablecast.core.errors import MisuseError
from stablecast.core.events import (
    FlightSize,
    Oddity,
    Overtaken,
    QuorumLost,
    RegistrationComplete,
    RegistrationFlag,
    RegistrationSuccess,
)
from stablecast.core.history import continued, fold, newest_history, overtaken
from stablecast.core.inputs import Arrived, Gone, Reset, Sent, SourceInput, Start, Tick
from stablecast.core.messages import (
    ConsumptionAck,
    Keepalive,
    LateJoinInfo,
    LateJoinRequest,
    Life,
    Message,
    Refused,
    Registered,
    RetransmitRequest,
    Role,
    SourceInfo,
    SourceInfoRequest,
    StableAck,
    StoreEntry,
)
from stablecast.core.ranges import RangeSet
from stablecast.core.registration import Registration
from stablecast.core.resume import offer, resume_point
from stablecast.core.settings import FlightBehavior, SourceConfig, register_request
from stablecast.core.stability import StabilityWindow
from stablecast.core.timers import TimerTable


class SourceState(IntEnum):
    """Whether the source may send."""

    IDLE = 0
    REGISTERING = 1
    ACTIVE = 2
    SUSPENDED = 3
    OVER = 4


class SourceStep(IntEnum):
    """What moves a source between its states."""

    START = 0
    COMPLETE = 1
    LOST = 2
    OVERTAKEN = 3


class SourceTimer(IntEnum):
    """SRI: announce again."""

    SRI = 0


class SourceChart(Chart):
    """A source's right to send."""

    states = States.from_enum(SourceState, initial=SourceState.IDLE, final=SourceState.OVER, use_enum_instance=True)

    start = states.IDLE.to(states.REGISTERING, cond="persistent", on="register") | states.IDLE.to(
        states.ACTIVE, unless="persistent", on="open"
    )
    complete = states.REGISTERING.to(states.ACTIVE, on=["resume", "report_complete"]) | states.SUSPENDED.to(
        states.ACTIVE, on="report_complete"
    )
    lost = states.ACTIVE.to(states.SUSPENDED, on="report_lost")
    overtaken = states.SUSPENDED.to(states.OVER, on="report_overtaken")


@attrs.define
class SourceEndpoint:
    """One life of one source on one topic. Driver contract: `stablecast.core` package docs."""

    config: SourceConfig
    window: StabilityWindow
    enrollment: Enrollment
    state: SourceState = SourceState.IDLE
    resume_point: int = 0
    term: int = 0
    lives: list[Life] = attrs.field(factory=list)
    version: int = 0
    announcements_left: int = 0
    over: bool = False
    timers: TimerTable = attrs.field(factory=TimerTable)
    outbox: list[Effect] = attrs.field(factory=list, eq=False)

    @classmethod
    def create(cls, config: SourceConfig) -> "SourceEndpoint":
        """A source that has not started."""
        registrations = {
            index: Registration(
                register_request(
                    Role.SOURCE, index, config, reg_id=store.reg_id, source_reg_id=0, transport=config.transport
                ),
                store.address,
                config.times,
            )
            for index, store in enumerate(config.stores)
        }
        window = StabilityWindow(config.group, config.retention, [RangeSet() for _ in config.stores])
        return cls(config, window, Enrollment(config.group, registrations))

    # The machine contract.

    def receive(self, event: SourceInput, now: int) -> None:
        """Feed one input. Raises MisuseError when the driver sent what it was never granted.

        Credit granted before a quorum was lost may still be reported as sent afterwards.
        """
        if self.state is SourceState.OVER:
            return
        match event:
            case Sent():
                self._on_sent(event)
            case Arrived():
                self._on_message(event.message, now)
            case Tick():
                self.handle_timeout(now)
            case Reset() | Gone():
                self.enrollment.on_broken(event, now, self.outbox)
            case Start():
                fire(SOURCE, self, SourceStep.START, now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        if self.state is SourceState.OVER:
            return
        self.enrollment.handle_timeout(now, self.outbox)
        if self.timers.pop_expired(now):
            self._announce(now)
        self._review(now)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` wants to be called."""
        if self.state is SourceState.OVER:
            return None
        due = (self.timers.next(), self.enrollment.next())
        return min((deadline for deadline in due if deadline is not None), default=None)

    def take_effects(self) -> list[Effect]:
        """What the driver must do, in order."""
        effects, self.outbox = self.outbox, []
        return effects

    # What the driver may ask.

    @property
    def can_send(self) -> bool:
        """Whether enough stores are registered."""
        return self.state is SourceState.ACTIVE

    @property
    def credit_messages(self) -> int:
        """Messages that may be sent before the flight is full."""
        return max(0, self.config.flight_messages - self.window.unsettled_messages)

    @property
    def credit_bytes(self) -> int | None:
        """Payload bytes that may be sent before the flight is full; None without such a limit."""
        if not self.config.flight_bytes:
            return None
        return max(0, self.config.flight_bytes - self.window.unsettled_bytes)

    def info(self) -> SourceInfo:
        """The SRI as of now."""
        stores = tuple(
            StoreEntry(index, 0, r.address, r.granted.reg_id, r.renewals)
            for index, r in self.enrollment.registrations.items()
            if r.granted is not None
        )
        return SourceInfo(
            self.config.incarnation,
            self.config.topic,
            self.version,
            serial.wire(self.resume_point),
            serial.wire(self.window.next - 1),
            self.config.reply_to,
            self.config.group.size,
            self.config.confirmations,
            stores,
            self.term,
            fold(self.lives),
        )

    # Inputs.

    def _on_sent(self, event: Sent) -> None:
        if self.state in (SourceState.IDLE, SourceState.REGISTERING):
            raise MisuseError("the source is not registered with enough stores")
        if event.first != self.window.next or event.count < 1:
            raise MisuseError(f"sent {event.count} from {event.first}, expected a run from {self.window.next}")
        if not self.enrollment:
            self.window.next = event.first + event.count
            self.window.trail = self.window.next
            return
        self.window.sent(event.count, event.payload_bytes, self.outbox)
        self._check_flight()

    def _on_message(self, message: Message, now: int) -> None:
        if message.incarnation != self.config.incarnation:
            self._odd("late-message", f"{type(message).__name__} for incarnation {message.incarnation:#x}")
            return
        match message:
            case StableAck():
                self._on_stable(message, now)
            case Registered() | Refused():
                self._on_answer(message, now)
            case Keepalive():
                self.enrollment.on_keepalive(message, now, self.outbox)
            case ConsumptionAck():
                number = serial.extend(message.number, self.window.next)
                self.window.on_confirmed(message.receiver_reg_id, number, self.outbox)
                self._check_flight()
            case RetransmitRequest():
                self._on_request(message)
            case LateJoinRequest():
                low, high = serial.wire(self.window.trail), serial.wire(self.window.next - 1)
                answer = LateJoinInfo(message.incarnation, message.request, low, high)
                self.outbox.append(Send(message.reply_to, answer))
            case SourceInfoRequest():
                if self.can_send:
                    self.outbox.append(Broadcast(self.info()))
            case _:
                self._odd("unexpected-message", f"{type(message).__name__} is not for this source")

    def _on_stable(self, ack: StableAck, now: int) -> None:
        """Acks count by content: what a store synced is synced, whatever has become of its registration since."""
        registration = self.enrollment.registrations.get(ack.store_index)
        last = serial.extend(ack.last, self.window.next)
        first = last - (ack.last - ack.first) % serial.MODULUS
        if registration is None or not self.resume_point <= first <= last < self.window.next:
            self._odd("wild-ack", f"store {ack.store_index} acknowledged {first}..{last}, never sent")
            return
        registration.on_traffic(now)
        self.window.on_acked(ack.store_index, first, last + 1, self.outbox)
        self._check_flight()

    def _on_answer(self, answer: Registered | Refused, now: int) -> None:
        registration = self.enrollment.on_answer(answer, now, self.outbox)
        if registration is None or not isinstance(answer, Registered):
            self._review(now)
            return
        if self.state is SourceState.SUSPENDED:
            if overtaken(self.lives, answer.lives):
                fire(SOURCE, self, SourceStep.OVERTAKEN, now)
                return
            self.term = max(self.term, answer.term)
        sending = self.can_send
        newest = offer(answer, self.window.next)[1]
        if self.state is not SourceState.REGISTERING:
            self.window.forget_store(answer.store_index, newest + 1)
        flags = RegistrationFlag.OLD if answer.old else RegistrationFlag.NONE
        self.outbox.append(
            Notify(RegistrationSuccess(answer.store_index, registration.address, answer.reg_id, 0, newest, flags))
        )
        self._review(now)
        if sending:
            self._change_info(now)

    def _on_request(self, request: RetransmitRequest) -> None:
        first = serial.extend(request.first, self.window.next)
        last = serial.extend(request.last, self.window.next)
        low, stop = self.window.retained(first, last + 1)
        if low < stop:
            self.outbox.append(Resend(request.reply_to, request.incarnation, low, stop - 1))

    # Rules.

    def _review(self, now: int) -> None:
        """Registration is complete, or no longer (T1, P-217, P-336)."""
        enrollment = self.enrollment
        if self.state is SourceState.ACTIVE and not enrollment.enough:
            fire(SOURCE, self, SourceStep.LOST, now)
        elif (self.state is SourceState.SUSPENDED and enrollment.enough) or (
            self.state is SourceState.REGISTERING and enrollment.complete
        ):
            fire(SOURCE, self, SourceStep.COMPLETE, now)

    def _check_flight(self) -> None:
        """OVER once when the flight size is exceeded, UNDER once when there is room again (P-310)."""
        if self.config.flight_behavior is not FlightBehavior.NOTIFY:
            return
        full = self.credit_messages == 0 or self.credit_bytes == 0
        if full != self.over:
            self.over = full
            self.outbox.append(Notify(FlightSize(full)))

    def _change_info(self, now: int) -> None:
        self.version += 1
        self.announcements_left = self.config.sri_maximum
        self._announce(now)

    def _announce(self, now: int) -> None:
        self.announcements_left -= 1
        self.outbox.append(Broadcast(self.info()))
        if self.announcements_left > 0:
            self.timers.set(SourceTimer.SRI, now + self.config.sri_interval_ns)

    def _odd(self, code: str, text: str) -> None:
        self.outbox.append(Notify(Oddity(code, text)))

    # Guards and actions of the chart.

    def persistent(self, now: int) -> bool:
        """Whether stores are configured."""
        return bool(self.enrollment)

    def register(self, now: int) -> None:
        """Ask every store at once."""
        for index, store in enumerate(self.config.stores):
            self.enrollment.registrations[index].start(store.reg_id, now, self.outbox)
        self.enrollment.open(now + self.config.times.interval_ns)

    def open(self, now: int) -> None:
        """A streaming source may send at once."""
        self._report_complete(RegistrationFlag.NONE)

    def resume(self, now: int) -> None:
        """Fix the resume point by consensus (T5, P-415)."""
        answers = [r.granted for r in self.enrollment.counting if r.granted is not None]
        self.resume_point = resume_point(answers, self.config.consensus, self.config.group.size)
        history, self.term = newest_history(answers, self.resume_point)
        self.lives = continued(history, self.config.incarnation, self.resume_point)
        self.window.begin(self.resume_point)

    def report_complete(self, now: int) -> None:
        """Tell joiners, then the application that it may send, and from which number."""
        self._change_info(now)
        self._report_complete(RegistrationFlag.NONE if self.enrollment.everyone else RegistrationFlag.QUORUM)

    def report_lost(self, now: int) -> None:
        """Too few stores are left: sending is refused until enough have answered."""
        self.outbox.append(Notify(QuorumLost(len(self.enrollment.counting), self.config.group.needed)))

    def report_overtaken(self, now: int) -> None:
        """Another life has taken our place."""
        self.outbox.append(Notify(Overtaken()))

    def _report_complete(self, flags: RegistrationFlag) -> None:
        self.outbox.append(Notify(RegistrationComplete(self.window.next, flags)))

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        self.window.check_invariants()
        assert not self.outbox or self.state is not SourceState.IDLE

    def abstract(self) -> tuple[object, ...]:
        """What the models see: the right to send, the resume point, the registrations, the window."""
        return (self.state.name, self.resume_point, self.enrollment.abstract(), self.window.abstract())


SOURCE = lower(
    SourceChart,
    SourceEndpoint,
    SourceState,
    SourceStep,
    ignore={},
    reject={
        SourceState.IDLE: (SourceStep.COMPLETE, SourceStep.LOST, SourceStep.OVERTAKEN),
        SourceState.REGISTERING: (SourceStep.START, SourceStep.LOST, SourceStep.OVERTAKEN),
        SourceState.ACTIVE: (SourceStep.START, SourceStep.COMPLETE, SourceStep.OVERTAKEN),
        SourceState.SUSPENDED: (SourceStep.START, SourceStep.LOST),
        SourceState.OVER: tuple(SourceStep),
    },
)
