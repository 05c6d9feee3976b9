"""The receiver's session with one life of one source.

    WAITING --informed--> REGISTERING --complete--> CHOOSING --chosen--> ACTIVE
    WAITING --informed--> ACTIVE                                (the source has no stores: streaming)

* Nothing is known before the SRI; it is asked for by unicast while none comes (P-226..P-229).
* One RegID per store: the application chooses it (`AskRegId`), or the session id stands for it (P-244, P-249).
* Complete like a source: all stores in the first interval, a quorum later (T1). Until then live data is held, not
  delivered (P-230).
* **Low number.** Stores that know the receiver say where its acknowledgements end; since those are contiguous prefixes
  the highest is right. When none knows it, the lowest on offer is where the history starts (settings name the
  documented behaviours beside it). The application may move it (T9, T10).
* **Incarnations.** Numbers from the resume point on belong to this session's incarnation, numbers below it to earlier
  ones. What does not fit is a dead tail and dropped. What the application consumed in an earlier session is not handed
  over again.
* Recovery asks the registered stores in turn, whatever is missing between `next` and the newest known number.
"""

from enum import IntEnum
from typing import assert_never

import attrs
from statemachine.states import States

from stablecast.core import serial
from stablecast.core.acknowledging import Acknowledger
from stablecast.core.chart import Chart, fire, lower
from stablecast.core.delivery import DeliveryWindow
from stablecast.core.effects import AskLow, Discard, Effect, Notify, Send
from stablecast.core.enlistment import Enlistment
from stablecast.core.enrollment import Enrollment
from stablecast.core.errors import MisuseError
from stablecast.core.events import (
    Oddity,
    RegistrationComplete,
    RegistrationError,
    RegistrationFlag,
    RegistrationSuccess,
)
from stablecast.core.inputs import (
    Arrived,
    Consumed,
    Data,
    Finish,
    Gone,
    History,
    LowChosen,
    ReceiverInput,
    RegIdChosen,
    Reset,
    Start,
    Tick,
)
from stablecast.core.lives import Lives
from stablecast.core.messages import (
    Keepalive,
    Message,
    Refused,
    Registered,
    Role,
    SourceInfo,
    SourceInfoRequest,
)
from stablecast.core.registration import RegistrationState
from stablecast.core.requests import RequestWindow, Target
from stablecast.core.resume import offer, receiver_low, span, start_number
from stablecast.core.settings import AckMode, ReceiverConfig
from stablecast.core.timers import TimerTable

MAX_STORES = 255
"""Stores that an SRI may name; the index is one byte in the election header."""


class ReceiverState(IntEnum):
    """How far the session is."""

    WAITING = 0
    REGISTERING = 1
    CHOOSING = 2
    ACTIVE = 3


class ReceiverStep(IntEnum):
    """What moves the session on."""

    INFORMED = 0
    COMPLETE = 1
    CHOSEN = 2


class ReceiverTimer(IntEnum):
    """ASK_INFO: ask for the SRI. ACK: acknowledge what was consumed."""

    ASK_INFO = 0
    ACK = 1


class ReceiverChart(Chart):
    """A receiver's session with one life of a source; it ends with its stream, not by an event."""

    validate_trap_states = False
    states = States.from_enum(ReceiverState, initial=ReceiverState.WAITING, use_enum_instance=True)

    informed = states.WAITING.to(states.REGISTERING, cond="persistent", on="register") | states.WAITING.to(
        states.ACTIVE, unless="persistent", on="stream"
    )
    complete = states.REGISTERING.to(states.CHOOSING, on="ask_low")
    chosen = states.CHOOSING.to(states.ACTIVE, on="begin")


@attrs.define
class ReceiverSession:
    """One receiver's session with one life of one source. Driver contract: `stablecast.core` package docs."""

    config: ReceiverConfig
    window: DeliveryWindow
    requests: RequestWindow
    enlistment: Enlistment
    state: ReceiverState = ReceiverState.WAITING
    info: SourceInfo | None = None
    resume_point: int = 0
    low: int = 0
    info_requests: int = 0
    lives: Lives = attrs.field(factory=Lives)
    acknowledger: Acknowledger = attrs.field(factory=Acknowledger)
    timers: TimerTable = attrs.field(factory=TimerTable)
    outbox: list[Effect] = attrs.field(factory=list, eq=False)

    @classmethod
    def create(cls, config: ReceiverConfig) -> "ReceiverSession":
        """A session that has not started."""
        requests = RequestWindow(
            Role.RECEIVER, config.incarnation, config.reply_to, config.window, config.retry_ns, config.give_up_ns
        )
        return cls(config, DeliveryWindow(config.proximity), requests, Enlistment(config))

    # The machine contract.

    def receive(self, event: ReceiverInput, now: int) -> None:
        """Feed one input. Raises MisuseError when the driver reports messages consumed that were not delivered."""
        match event:
            case Data():
                self._on_data(event, now)
            case Consumed():
                self._on_consumed(event, now)
            case Arrived():
                self._on_message(event.message, now)
            case Tick():
                self.handle_timeout(now)
            case LowChosen():
                if self.state is ReceiverState.CHOOSING:
                    fire(RECEIVER, self, ReceiverStep.CHOSEN, now, event.number)
                    self._recover(now)
            case RegIdChosen():
                self.enlistment.on_reg_id(event.store_index, event.reg_id, now, self.outbox)
            case Reset() | Gone():
                self.enrollment.on_broken(event, now, self.outbox)
                self._recover(now)
            case Finish():
                self._acknowledge()
            case History():
                self.lives.remember(event.incarnation, event.first, event.last + 1)
            case Start():
                if self.state is ReceiverState.WAITING and self.config.source_request:
                    self.timers.set(ReceiverTimer.ASK_INFO, now + self.config.sri_request_interval_ns)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        self.enrollment.handle_timeout(now, self.outbox)
        for kind in self.timers.pop_expired(now):
            if kind == ReceiverTimer.ASK_INFO:
                self._ask_info(now)
            else:
                self._acknowledge()
        for start, stop in self.requests.handle_timeout(now, self.enrollment.enough):
            self.window.lose(start, stop, self.outbox)
        self._review(now)
        self._recover(now)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` wants to be called."""
        due = (self.timers.next(), self.requests.next(), self.enrollment.next())
        return min((deadline for deadline in due if deadline is not None), default=None)

    def take_effects(self) -> list[Effect]:
        """What the driver must do, in order."""
        effects, self.outbox = self.outbox, []
        return effects

    # Inputs.

    def _on_data(self, event: Data, now: int) -> None:
        if self.info is None or event.session != self.config.incarnation:
            self._drop(event, "early-data")
            return
        first = serial.extend(event.wire_first, self._high)
        stop = first + event.count
        if event.incarnation == self.config.incarnation:
            belongs = first >= self.resume_point
        else:
            belongs = stop <= self.resume_point
        if not belongs:
            self._drop(event, "dead-tail")
            return
        known = self.lives.known(event.incarnation, first, stop)
        for low, high in known:
            self.window.know(low, high, self.outbox)
        if known:
            self._plan_ack(now)
        self.lives.saw(first, stop, event.incarnation)
        self.window.on_run(first, stop, event.token, event.recovered, self.outbox)
        if self.requests:
            self.requests.got(first, stop)
        if event.recovered or self.window.next != stop:
            self._recover(now)

    def _on_consumed(self, event: Consumed, now: int) -> None:
        if self.window.next is None or event.last >= self.window.next:
            raise MisuseError(f"consumed {event.first}..{event.last}, which is not delivered yet")
        self.window.on_consumed(event.first, event.last + 1)
        self.lives.on_consumed(event.first, event.last + 1)
        self._plan_ack(now)
        self._recover(now)

    def _plan_ack(self, now: int) -> None:
        if self.config.ack_mode is AckMode.IMMEDIATE:
            self._acknowledge()
        elif not self.timers.armed(ReceiverTimer.ACK):
            self.timers.set(ReceiverTimer.ACK, now + self.config.ack_interval_ns)

    def _on_message(self, message: Message, now: int) -> None:
        if message.incarnation != self.config.incarnation:
            self._odd("late-message", f"{type(message).__name__} for incarnation {message.incarnation:#x}")
            return
        match message:
            case SourceInfo():
                self._on_info(message, now)
            case Registered() | Refused():
                self._on_answer(message, now)
            case Keepalive():
                self.enrollment.on_keepalive(message, now, self.outbox)
            case _:
                self._odd("unexpected-message", f"{type(message).__name__} is not for a receiver")

    def _on_info(self, info: SourceInfo, now: int) -> None:
        if self.info is not None and info.version < self.info.version:
            return
        if len(info.stores) > MAX_STORES:
            self._odd("wild-info", f"the source names {len(info.stores)} stores")
            return
        first = self.info is None
        self.info = info
        self.timers.stop(ReceiverTimer.ASK_INFO)
        if first:
            self.resume_point, high = span(info.low, info.high, 0)
            self.window.learn(high)
            fire(RECEIVER, self, ReceiverStep.INFORMED, now, high)
        elif info.stores:
            self.window.learn(serial.extend(info.high, self._high))
            self.enlistment.on_info(info, now, self.outbox)
        self._recover(now)

    def _on_answer(self, answer: Registered | Refused, now: int) -> None:
        registration = self.enrollment.on_answer(answer, now, self.outbox)
        if registration is None or not isinstance(answer, Registered):
            return
        low, high = offer(answer, self._high)
        if high >= low:
            self.window.learn(high)
        flags = RegistrationFlag.OLD if answer.old else RegistrationFlag.NONE
        source_reg_id = registration.request.source_reg_id
        self.outbox.append(
            Notify(
                RegistrationSuccess(answer.store_index, registration.address, answer.reg_id, source_reg_id, low, flags)
            )
        )
        self._review(now)
        if self.state is ReceiverState.ACTIVE and self.window.acked >= self.low:
            self.acknowledger.tell_store(registration, self.window.acked, self.outbox)
        self._recover(now)

    # Rules.

    @property
    def enrollment(self) -> Enrollment:
        """The registrations with the source's stores."""
        return self.enlistment.enrollment

    @property
    def _high(self) -> int:
        """The newest number that the source sent, as far as is known; the first SRI names one."""
        assert self.window.high is not None
        return self.window.high

    @property
    def _grants(self) -> list[Registered]:
        return [r.granted for r in self.enrollment.counting if r.granted is not None]

    def _review(self, now: int) -> None:
        if self.state is ReceiverState.REGISTERING and self.enrollment.complete:
            fire(RECEIVER, self, ReceiverStep.COMPLETE, now)

    def _recover(self, now: int) -> None:
        """Ask for what is missing, as far as the window allows."""
        behind = self.window.unconsumed > self.config.proximity  # More would only wait for the application.
        if self.state is not ReceiverState.ACTIVE or not self.enrollment or behind:
            return
        if not self.requests:
            gaps = self.window.missing()
            for start, stop in gaps:
                self.requests.want(start, stop)
            if not gaps:
                return
        targets = [
            Target(r.address, r.request.source_reg_id)
            for r in self.enrollment.counting
            if r.state is RegistrationState.REGISTERED
        ]
        self.requests.issue(targets, now, self.outbox)

    def _acknowledge(self) -> None:
        number = self.window.acknowledge()
        if number is None or self.info is None:
            return
        self.acknowledger.tell(self.enrollment.counting, self.info, number, self.outbox)

    def _ask_info(self, now: int) -> None:
        if self.info_requests < self.config.sri_request_maximum:
            self.info_requests += 1
            self.outbox.append(Send(self.config.source_request, SourceInfoRequest(self.config.incarnation)))
            self.timers.set(ReceiverTimer.ASK_INFO, now + self.config.sri_request_interval_ns)
        else:
            text = f"no SRI after {self.info_requests} requests to {self.config.source_request}"
            self.outbox.append(Notify(RegistrationError(0, self.config.source_request, text)))

    def _drop(self, event: Data, code: str) -> None:
        self.outbox.append(Discard(event.token))
        self._odd(code, f"{event.count} messages from {event.wire_first} of incarnation {event.incarnation:#x}")

    def _odd(self, code: str, text: str) -> None:
        self.outbox.append(Notify(Oddity(code, text)))

    # Guards and actions of the chart.

    def persistent(self, now: int, high: int) -> bool:
        """Whether the source has stores."""
        return self.info is not None and bool(self.info.stores)

    def register(self, now: int, high: int) -> None:
        """Ask the stores that the SRI names."""
        assert self.info is not None
        self.enlistment.begin(self.info, now, self.outbox)

    def stream(self, now: int, high: int) -> None:
        """No stores: deliver whatever comes from now on."""
        self.window.begin(high + 1, self.outbox)

    def ask_low(self, now: int) -> None:
        """Tell the application where recovery would start (P-421)."""
        high = self._high
        self.low = min(receiver_low(self._grants, self.config.consensus, self._high), high + 1)
        by_maximum = max(self.low, high - self.config.request_maximum) if self.config.request_maximum else self.low
        self.outbox.append(AskLow(high, by_maximum, self.low))

    def begin(self, now: int, wish: int) -> None:
        """Start to deliver."""
        high = self._high
        start = start_number(self.low, high, self.config.request_maximum, wish)
        if wish > high + 1:
            self._odd("low-beyond-high", f"asked to start at {wish}, the newest number is {high}")
        flags = RegistrationFlag.NONE if self.enrollment.everyone else RegistrationFlag.QUORUM
        self.outbox.append(Notify(RegistrationComplete(start, flags)))
        self.window.begin(start, self.outbox)

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        self.window.check_invariants()

    def abstract(self) -> tuple[object, ...]:
        """What the models see: state, registrations, window, requests."""
        return (self.state.name, self.enrollment.abstract(), self.window.abstract(), self.requests.abstract())


RECEIVER = lower(
    ReceiverChart,
    ReceiverSession,
    ReceiverState,
    ReceiverStep,
    ignore={},
    reject={
        ReceiverState.WAITING: (ReceiverStep.COMPLETE, ReceiverStep.CHOSEN),
        ReceiverState.REGISTERING: (ReceiverStep.INFORMED, ReceiverStep.CHOSEN),
        ReceiverState.CHOOSING: (ReceiverStep.INFORMED, ReceiverStep.COMPLETE),
        ReceiverState.ACTIVE: (ReceiverStep.INFORMED, ReceiverStep.COMPLETE, ReceiverStep.CHOSEN),
    },
)
