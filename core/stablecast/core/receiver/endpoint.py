"""The receiver's session with one life of one source.

    WAITING --informed--> REGISTERING --complete--> CHOOSING --chosen--> ACTIVE
    WAITING --informed--> JOINING --joined--> ACTIVE            (no stores, but the source retransmits)
    WAITING --informed--> ACTIVE                                (no stores: from now on)
    any state --withdraw--> WITHDRAWN                           (delivers what comes, acknowledges nothing)

* A session knows nothing before the SRI, which `source_contact` requests (P-226..P-229).
* There is one RegID for each store: the application chooses it (`AskRegId`), or the session id replaces it (P-244,
  P-249). `store_registrations` decides where to register and what the answers amount to.
* Registration completes like a source's: all stores in the first interval, a quorum later (T1, C-30). Until then live
  data is held, not delivered (P-230).
* The stores propose where to begin, and the application may change it: see `arrival` (T9, T10).
* A source without usable stores is asked for the range that it retransmits to late receivers; that range is history,
  like that of stores.
* `arrival` sorts runs by life, `recovery` requests missing ones, `consumption_acks` acknowledges.
* After `Withdraw` the session goes on like a streaming one: missing messages are lost, live ones delivered (P-588).
"""

from collections.abc import Callable
from enum import IntEnum
from typing import assert_never

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.protocol import inputs
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Deliver, Discard, Effect, Notify, ReceiverEffect
from stablecast.core.protocol.events import Oddity, RegistrationError
from stablecast.core.protocol.inputs import Arrived, Consumed, Data
from stablecast.core.protocol.messages import Registered
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.resume_point import offer
from stablecast.core.protocol.settings import AckMode, ReceiverConfig, UseOtr
from stablecast.core.receiver.arrival import Arrivals, FirstNumberChoice
from stablecast.core.receiver.consumption_acks import Acknowledger, AckTimer
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.lives import Lives
from stablecast.core.receiver.recovery import Recovery
from stablecast.core.receiver.source_contact import SourceContact, SourceNews
from stablecast.core.receiver.status import ReceiverStatus
from stablecast.core.receiver.store_registrations import StoreRegistrations
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.store_registration import Registration


class ReceiverState(IntEnum):
    WAITING = 0
    REGISTERING = 1
    CHOOSING = 2
    ACTIVE = 3
    JOINING = 4
    WITHDRAWN = 5


class ReceiverStep(IntEnum):
    """The events that move the session on."""

    INFORMED = 0
    COMPLETE = 1
    CHOSEN = 2
    JOINED = 3
    WITHDRAW = 4


class ReceiverChart(Chart):
    """The chart of a receiver's session with one life of a source; it ends with its stream, not by an event."""

    validate_trap_states = False
    states = States.from_enum(ReceiverState, initial=ReceiverState.WAITING, use_enum_instance=True)

    informed = (
        states.WAITING.to(states.REGISTERING, cond="persistent", on="register")
        | states.WAITING.to(states.JOINING, cond="recovers", on="ask_source")
        | states.WAITING.to(states.ACTIVE, on="follow")
        | states.WITHDRAWN.to.itself(internal=True, on="go_alone")
    )
    complete = states.REGISTERING.to(states.CHOOSING, on="ask_low")
    chosen = states.CHOOSING.to(states.ACTIVE, on="begin")
    joined = states.JOINING.to(states.ACTIVE, on="begin_at")
    withdraw = states.WITHDRAWN.from_(
        states.WAITING, states.REGISTERING, states.CHOOSING, states.JOINING, states.ACTIVE, on="leave"
    )


@attrs.define
class ReceiverSession:
    """One receiver's session with one life of one source. Driver contract: `stablecast.core` package docs."""

    config: ReceiverConfig
    arrivals: Arrivals
    enlistment: StoreRegistrations
    acknowledger: Acknowledger
    contact: SourceContact
    starting: FirstNumberChoice
    state: ReceiverState = ReceiverState.WAITING
    outbox: list[Effect] = attrs.field(factory=list, eq=False)

    @classmethod
    def create(cls, config: ReceiverConfig) -> "ReceiverSession":
        """Return a session that has not started."""
        parts = (
            Arrivals.of(config),
            StoreRegistrations(config),
            Acknowledger(config),
            SourceContact(config),
            FirstNumberChoice(config),
        )
        return cls(config, *parts)

    # The machine contract.

    def receive(self, event: inputs.ReceiverInput, now: int) -> None:
        """Feed one input. Raises MisuseError for messages consumed or acknowledged that were not delivered."""
        match event:
            case Data():
                self._on_data(event, now)
            case Consumed():
                self._on_consumed(event, now)
            case Arrived():
                self._on_message(event.message, now)
            case inputs.Tick():
                self.handle_timeout(now)
            case inputs.Acknowledge():
                self.arrivals.on_acknowledged(event)
                self._acknowledge(now)
            case inputs.Lost():
                self._on_lost(event, now)
            case inputs.LowChosen():
                self._on_low(event.number, now)
            case inputs.RegIdChosen():
                self.enlistment.on_reg_id(event.store_index, event.reg_id, now, self.outbox)
            case inputs.Reset() | inputs.Gone():
                self.enrollment.on_broken(event, now, self.outbox)
                self.acknowledger.on_broken(event, self.enrollment.counting, self.info, self.window, now, self.outbox)
                self._on_source_gone(event, now)
                self._recover(now)
            case inputs.Useless():
                self._on_useless(event, now)
            case inputs.Finish():
                self._acknowledge(now)
            case inputs.History():
                self.arrivals.on_history(event)
            case inputs.Moved():
                self.arrivals.requests.answer_to(event.reply_to)
                self.contact.config = self.enlistment.move(event.reply_to, now, self.outbox)
            case inputs.Withdraw():
                fire(RECEIVER, self, ReceiverStep.WITHDRAW, now, 0)
            case inputs.Start():
                self.contact.start(now, waiting=self.state is ReceiverState.WAITING)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        self.enlistment.handle_timeout(now, self.outbox)
        if self.contact.expired(now):
            self._ask(now)
        for kind in self.acknowledger.timers.pop_expired(now):
            if kind == AckTimer.ACK:
                self._acknowledge(now)
            else:
                self.acknowledger.show_life(self.enrollment.counting, self.contact.source, now, self.outbox)
        self.arrivals.handle_timeout(now, self.enlistment.may_give_up, self.outbox, whole=self.enrollment.steady)
        self._review(now)
        self._recover(now)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        requests, enlistment = self.arrivals.requests, self.enlistment
        due = (self.contact.due, self.acknowledger.timers.next(), requests.next(), enlistment.next())
        return min([deadline for deadline in due if deadline is not None], default=None)

    def take_effects(self) -> list[ReceiverEffect]:
        """Return the effects to perform, in order, and empty the outbox."""
        effects: list[ReceiverEffect] = self.outbox  # type: ignore[assignment] # this machine has no other effects
        self.outbox = []
        return effects

    def _on_data(self, event: Data, now: int) -> None:
        plain = event.session == self.config.incarnation == event.incarnation and not event.recovered
        if plain and (at := self.arrivals.goes_on(event.wire_first, event.count)) is not None:
            self.outbox.append(Deliver(event.token, 0, event.count, at, False, True))
        elif self.info is None or event.session != self.config.incarnation:
            self.outbox.append(Discard(event.token))
            self._odd("early-data", f"{event.count} messages from {event.wire_first} of session {event.session:#x}")
        else:
            if self.arrivals.on_data(event, self.outbox):
                self._plan_ack(now)
            self._recover(now)

    def _on_lost(self, event: inputs.Lost, now: int) -> None:
        if self.info is not None and event.session == self.config.incarnation:
            self.arrivals.on_lost(event, now, self.outbox)
            self._recover(now)

    def _on_source_gone(self, event: inputs.Reset | inputs.Gone, now: int) -> None:
        """Count the time of requests anew when the source is gone.

        Stores answer for the newest life only. So while this receiver still had the stream of an ended one, it asked in
        vain. It counts anew once: what no store has must be given up in the end.
        """
        left = isinstance(event, inputs.Gone) and self.info is not None and event.address == self.info.request
        if left and not self.contact.gone:
            self.contact.gone = True
            self.arrivals.requests.begin_anew(now)

    def _recover(self, now: int) -> None:
        if self.state is ReceiverState.ACTIVE and self.arrivals.window.behind:
            self.arrivals.recover(self.enlistment.targets(Target(self.contact.source.request, 0)), now, self.outbox)
        if self.arrivals.window.skipped:
            self._pass_losses(now)

    def _on_low(self, number: int, now: int) -> None:
        if self.state is ReceiverState.CHOOSING:
            fire(RECEIVER, self, ReceiverStep.CHOSEN, now, number)
            self._recover(now)

    def _on_consumed(self, event: Consumed, now: int) -> None:
        self.arrivals.on_consumed(event)
        self._plan_ack(now)
        self._recover(now)

    def _on_useless(self, event: inputs.Useless, now: int) -> None:
        self.arrivals.on_useless(event)
        self._plan_passed(now)
        self._recover(now)

    def _pass_losses(self, now: int) -> None:
        """Acknowledge messages that arrived and were consumed before a message below them was given up.

        In order, messages above a loss are delivered after it, and their consumption plans the acknowledgement.
        """
        window = self.window
        if not window.in_order and window.grown(self.config.ack_mode is AckMode.EXPLICIT) is not None:
            self._plan_passed(now)

    def _plan_passed(self, now: int) -> None:
        if self.config.ack_mode is AckMode.EXPLICIT:
            self._acknowledge(now)  # Acknowledgements of later messages may have waited for this one.
        else:
            self._plan_ack(now)

    def _plan_ack(self, now: int) -> None:
        if self.state is not ReceiverState.WITHDRAWN and self.acknowledger.plan(now):
            self._acknowledge(now)

    def _acknowledge(self, now: int) -> None:
        first = self.window.acked + 1
        number = self.acknowledger.number(self.window)
        if number is not None and self.state is not ReceiverState.WITHDRAWN:
            parts = self.window.confirmed(first, number + 1)
            self.acknowledger.acknowledge(
                self.enrollment.counting, self.contact.source, number, parts, now, self.outbox
            )

    # Messages.

    def _on_message(self, message: msg.Message, now: int) -> None:
        if message.incarnation != self.config.incarnation:
            self._odd("late-message", f"{type(message).__name__} for incarnation {message.incarnation:#x}")
            return
        match message:
            case msg.SourceInfo():
                self._on_info(message, now)
            case Registered() | msg.Refused() | msg.Deregistered():
                self._on_answer(message, now)
            case msg.Keepalive():
                self.enrollment.on_keepalive(message, now, self.outbox)
            case msg.LateJoinInfo():
                self._on_late_join(message, now)
            case _:
                self._odd("unexpected-message", f"{type(message).__name__} is not for a receiver")

    def _on_info(self, info: msg.SourceInfo, now: int) -> None:
        news = self.contact.on_info(info, self.outbox)
        if news is SourceNews.FIRST:
            self.arrivals.inform(info, self.outbox)
            fire(RECEIVER, self, ReceiverStep.INFORMED, now, self.arrivals.high)
        elif news is not SourceNews.NOTHING and (self.enrollment or self.requests.otr):
            self.window.learn(serial.extend(info.high, self.arrivals.high))
            if news is SourceNews.NEWER and self.enrollment:
                self.enlistment.on_info(info, now, self.outbox)
        self._recover(now)

    def _on_answer(self, answer: Registered | msg.Refused | msg.Deregistered, now: int) -> None:
        registration = self.enlistment.on_answer(answer, self.window.high or 0, now, self.outbox)
        if registration is None or not isinstance(answer, Registered):
            return
        # A store may know newer numbers than the stream has shown yet.
        low, high = offer(answer, self.arrivals.high)
        if high >= low and not answer.no_cache:
            self.window.learn(high)
        self._review(now)
        if self.window.next is not None:
            self._welcome(registration, now)
        if self.enrollment.counting == [registration]:
            # Without a counting store the receiver had no RegID to confirm under, so confirmations were left out; and
            # those of an earlier session may have been lost with a connection that broke after its end.
            again = (inputs.Reset(self.contact.source.request), self.enrollment.counting, self.info, self.window)
            self.acknowledger.on_broken(*again, now, self.outbox)
        self._recover(now)

    def _on_late_join(self, answer: msg.LateJoinInfo, now: int) -> None:
        if self.state is ReceiverState.JOINING:  # Late answers change nothing.
            self.contact.stop()
            fire(RECEIVER, self, ReceiverStep.JOINED, now, self.arrivals.join(answer))
            self._recover(now)
        elif self.state is ReceiverState.ACTIVE:
            self.arrivals.on_denied(answer, self.enrollment.whole, self.outbox)
            self._recover(now)

    def _ask(self, now: int) -> None:
        if self.state is ReceiverState.JOINING:
            trouble = self.contact.ask_range(now, self.outbox)
            if trouble:
                self._odd("late-join-unanswered", trouble)
                fire(RECEIVER, self, ReceiverStep.JOINED, now, self.arrivals.first_live)
        else:
            trouble = self.contact.ask_info(now, self.outbox)
            if trouble:
                self.outbox.append(Notify(RegistrationError(0, self.config.source_request, trouble)))

    def _odd(self, code: str, text: str) -> None:
        self.outbox.append(Notify(Oddity(code, text)))

    # The read API (`status` for more, off the data path).

    @property
    def next_number(self) -> int | None:
        """The first number neither delivered nor given up; None until the session knows where to begin."""
        return self.arrivals.window.next

    @property
    def newest_number(self) -> int:
        """The newest number known to exist. Only after the first SRI (`info`)."""
        return self.arrivals.high

    @property
    def start_number(self) -> int:
        """The number at which delivery began; 0 before."""
        return self.arrivals.window.start

    @property
    def resume_point(self) -> int:
        """The first number of this life of the source; 0 before the first SRI."""
        return self.arrivals.resume_point

    @property
    def recovering(self) -> bool:
        """True while messages are missing or requested."""
        return bool(self.requests or self.window.missing())

    @property
    def status(self) -> ReceiverStatus:
        """Read-only questions about what the session knows of its stores and messages."""
        return ReceiverStatus(self.enlistment, self.arrivals, self.acknowledger, self.starting)

    def delivered(self, first: int, stop: int) -> bool:
        """Return whether [first, stop) was delivered, except for numbers that were given up."""
        return self.window.delivered(first, stop)

    @property
    def advance(self) -> Callable[[int, int], int | None]:
        """The shortcut of a driver for the live data of this life: a function of `(wire_first, count)`.

        It accepts a run that continues the stream and returns its first number; the driver delivers the run itself. For
        any other run it returns None and changes nothing: feed a `Data` input then.
        """
        return self.arrivals.goes_on

    def record_consumed(self, first: int, stop: int) -> None:
        """Record that [first, stop) was consumed after the session ended, for `status.lives`."""
        self.lives.on_consumed(first, stop)

    @property
    def enrollment(self) -> RegistrationSet:
        """The registrations with the source's stores."""
        return self.enlistment.enrollment

    @property
    def info(self) -> msg.SourceInfo | None:
        """The source's newest SRI."""
        return self.contact.info

    @property
    def window(self) -> DeliveryWindow:
        """The delivered and consumed messages."""
        return self.arrivals.window

    @property
    def begins_at_proposal(self) -> bool:
        """True if its stores set where delivery began: no store could have supplied lower messages."""
        return bool(self.enrollment) and self.contact.recovers and self.window.start == self.starting.low

    @property
    def requests(self) -> Recovery:
        """The requests for missing messages."""
        return self.arrivals.requests

    @property
    def lives(self) -> Lives:
        """The consumed messages by the life that sent them."""
        return self.arrivals.lives

    def _review(self, now: int) -> None:
        if self.state is ReceiverState.REGISTERING and self.enlistment.review(now, self.outbox):
            fire(RECEIVER, self, ReceiverStep.COMPLETE, now, 0)

    def _welcome(self, registration: Registration, now: int) -> None:
        """Send a store that granted what it lacks of this receiver, after its grant may have changed the start."""
        high, grant = self.arrivals.high, registration.granted
        low = None if grant is None else self.starting.revise(grant, self.window, high, self.outbox)
        if low is not None:
            self.begin_at(now, self.starting.choose(low, high, self.enrollment.everyone, self.outbox))
        self.acknowledger.catch_up(registration, self.window, self.outbox)

    # Guards and actions of the chart.

    def persistent(self, now: int, number: int) -> bool:
        """Return whether the source has stores to use."""
        return self.contact.persistent

    def recovers(self, now: int, number: int) -> bool:
        """Return whether the source retransmits to late receivers."""
        return self.contact.recovers

    def register(self, now: int, number: int) -> None:
        """Ask the stores that the SRI names."""
        self.enlistment.begin(self.contact.source, now, self.outbox)
        self.acknowledger.watch(now)

    def ask_source(self, now: int, number: int) -> None:
        """Ask the source for the range that it retransmits."""
        self.contact.begin(now)

    def follow(self, now: int, high: int) -> None:
        """Deliver everything from now on."""
        self.begin_at(now, high + 1)

    def ask_low(self, now: int, number: int) -> None:
        """Propose to the application where recovery starts (P-421)."""
        high = self.arrivals.high
        low, lacking = self.enlistment.low(high), self.enlistment.lacking(high)
        if low > high + 1:
            self.arrivals.on_unannounced(low - 1, self.enlistment.used(high), self.outbox)
        self.starting.certain = self.enlistment.known or Repair.VOTE not in self.config.repairs
        if lacking is not None:
            self.starting.first_held, low = low, min(low, lacking)
        self.starting.ask(low, self.arrivals.high, self.contact.recovers, self.outbox)

    def begin(self, now: int, wish: int) -> None:
        """Start to deliver, where the application wishes."""
        self.begin_at(now, self.starting.choose(wish, self.arrivals.high, self.enrollment.everyone, self.outbox))
        if self.starting.first_held is not None:
            self.window.lose(self.window.start, self.starting.first_held, self.outbox)
        for registration in self.enrollment.counting:
            self._welcome(registration, now)

    def begin_at(self, now: int, start: int) -> None:
        """Deliver from `start` on; recover what the stream leaves out, as configured."""
        use = self.config.otr.use
        wanted = use is UseOtr.ON or (use is UseOtr.PERSISTENT and bool(self.enrollment))
        self.arrivals.begin(start, wanted and self.contact.recovers, self.outbox)

    def leave(self, now: int, number: int) -> None:
        """Deregister, and give up recovery: no peer is asked from now on (P-588)."""
        self.enrollment.withdraw(now, self.outbox)
        self.acknowledger.stop()
        self.contact.stop()
        if self.info is not None:
            self.go_alone(now, number)

    def go_alone(self, now: int, number: int) -> None:
        """Deliver live messages only."""
        self.arrivals.abandon(self.outbox)


_S = ReceiverState
_T = ReceiverStep
RECEIVER = lower(
    ReceiverChart,
    ReceiverSession,
    ReceiverState,
    ReceiverStep,
    ignore={_S.WITHDRAWN: (_T.WITHDRAW,)},
    reject={
        _S.WAITING: (_T.COMPLETE, _T.CHOSEN, _T.JOINED),
        _S.REGISTERING: (_T.INFORMED, _T.CHOSEN, _T.JOINED),
        _S.CHOOSING: (_T.INFORMED, _T.COMPLETE, _T.JOINED),
        _S.ACTIVE: (_T.INFORMED, _T.COMPLETE, _T.CHOSEN, _T.JOINED),
        _S.JOINING: (_T.INFORMED, _T.COMPLETE, _T.CHOSEN),
        _S.WITHDRAWN: (_T.COMPLETE, _T.CHOSEN, _T.JOINED),
    },
)
