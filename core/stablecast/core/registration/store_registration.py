"""A client's registration with one store, the same for sources and receivers.

    IDLE --start--> REGISTERING --answer--> REGISTERED --reset|silence|gone--> RENEWING --answer--> REGISTERED
                                            RENEWING --retry--> UNRESPONSIVE --answer--> REGISTERED
    any --withdraw--> WITHDRAWING --forgotten--> WITHDRAWN          (at once where the store never granted)
    REGISTERING, UNRESPONSIVE --park--> IDLE                        (round robin: another store's turn)

* A request is repeated every registration interval until it is answered (T6). All requests of one attempt share a
  *generation*, which the answer echoes: an answer to an earlier attempt is late and dropped.
* A store that falls silent, refuses or breaks a connection is asked again at once. It counts until a whole interval has
  passed without an answer, because a restarting store must not stop the source (P-027). The application gets an event
  for both: "unresponsive", then "unresponsive - no registration response." (P-602). People are called by these events,
  so they say no more than is known: a store that was not reported silent is so after as many requests as fit the time
  of silence, and silence counts from a probe on. A process that did not run has asked nobody.
* **Lease.** The RegID belongs to the client until the grant's activity timeout has passed since the *sending* of the
  oldest request that the store answered, less a margin for clocks of different rate. After that without an answer the
  store may have given the RegID to another, so the registration is over (formal design, 7.6). Without `Repair.LEASE` a
  client goes on.
* A probe (a keepalive that requests an answer) is sent when its interval ends and none is outstanding. Its answer
  renews the lease from the time of sending.
* Where a rule depends on active stores (`watched`), a store is *quiet* when it left a probe unanswered for a
  registration interval and sent nothing else. It counts as registered until its silence is too long (P-521, P-524).
* A store that is found by name may move: the client registers again at the new address (P-203, P-207).
* A client that asked for RPP and got something else has a "granted - error", because an old store does not know RPP. It
  counts as a refusal (P-573, P-574).
* Deregistration is repeated until the store confirms it (P-584, P-586). A store that never granted need not be asked.
  If its grant is on the way, the state lifetime ends what the grant began.
"""

from enum import IntEnum

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.machine.timers import TimerTable
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import DeregistrationSuccess, RegistrationError, StoreUnresponsive
from stablecast.core.protocol.generations import NONE, newest, outdated
from stablecast.core.protocol.refusals import sentence
from stablecast.core.protocol.settings import RegistrationTimes

LEASE_MARGIN = 8
"""One part in this many of the activity timeout is given up for the drift between two clocks."""

NOT_PACED = "granted - error: the store does not know receiver-paced persistence"
"""The text of the event when a store does not acknowledge RPP (P-574)."""


class RegistrationState(IntEnum):
    """The standing of a client at one store."""

    IDLE = 0
    REGISTERING = 1
    REGISTERED = 2
    RENEWING = 3
    UNRESPONSIVE = 4
    WITHDRAWING = 5
    WITHDRAWN = 6


class RegistrationEvent(IntEnum):
    """The events between a client and one store."""

    START = 0
    ANSWER = 1
    REFUSAL = 2
    RETRY = 3
    RESET = 4
    SILENCE = 5
    EXPIRED = 6
    MOVE = 7
    PARK = 8
    WITHDRAW = 9
    FORGOTTEN = 10


class RegistrationTimer(IntEnum):
    """The timers of a registration.

    RETRY: repeat the request. PROBE: ask for a sign of life. QUIET: none came soon. SILENCE: none came for too long.
    LEASE: the RegID may be gone.
    """

    RETRY = 0
    PROBE = 1
    SILENCE = 2
    LEASE = 3
    QUIET = 4


class RegistrationChart(Chart):
    states = States.from_enum(
        RegistrationState, initial=RegistrationState.IDLE, final=RegistrationState.WITHDRAWN, use_enum_instance=True
    )

    start = states.IDLE.to(states.REGISTERING, on="ask")
    answer = states.REGISTERED.from_(states.REGISTERING, states.RENEWING, states.UNRESPONSIVE, on="grant")
    refusal = (
        states.REGISTERING.to.itself(internal=True, on="report_refusal")
        | states.RENEWING.to(states.UNRESPONSIVE, on="report_refusal")
        | states.UNRESPONSIVE.to.itself(internal=True, on="report_refusal")
    )
    retry = (
        states.REGISTERING.to.itself(internal=True, on=["report_no_response", "repeat"])
        | states.RENEWING.to(states.UNRESPONSIVE, on=["report_no_response", "repeat"])
        | states.UNRESPONSIVE.to.itself(internal=True, on=["report_no_response", "repeat"])
        | states.WITHDRAWING.to.itself(internal=True, on="repeat_farewell")
    )
    reset = states.REGISTERED.to(states.RENEWING, on="ask")
    silence = states.REGISTERED.to(states.RENEWING, on=["report_silence", "ask"]) | states.RENEWING.to.itself(
        internal=True, on="report_silence"
    )
    expired = states.REGISTERED.to(states.UNRESPONSIVE, on=["report_expiry", "ask"]) | states.RENEWING.to(
        states.UNRESPONSIVE, on="report_expiry"
    )
    move = (
        states.REGISTERING.to.itself(internal=True, on="ask")
        | states.RENEWING.from_(states.REGISTERED, states.RENEWING, on="ask")
        | states.UNRESPONSIVE.to.itself(internal=True, on="ask")
    )
    park = states.IDLE.from_(states.REGISTERING, states.UNRESPONSIVE, on="rest")
    withdraw = (
        states.WITHDRAWING.from_(states.IDLE, states.REGISTERING, cond="was_granted", on="take_leave")
        | states.WITHDRAWN.from_(states.IDLE, states.REGISTERING, on="rest")
        | states.WITHDRAWING.from_(states.REGISTERED, states.RENEWING, states.UNRESPONSIVE, on="take_leave")
    )
    forgotten = states.WITHDRAWING.to(states.WITHDRAWN, on="rest")


@attrs.define
class Registration:
    """One client's registration with the store at `address`.

    Attributes:
        request: The PREG to send, its RegID and generation kept current.
        granted: The newest grant, or None.
        leased: The client keeps to the lease (`Repair.LEASE`).
        refused: The store's newest answer is a refusal.
        passed_over: An interval ended without a grant.
        replaced: Another source holds the RegID that this client was granted.
        unanswered: Requests of this attempt that had no answer in time, as far as they matter.
        reported: The generation that the store was last asked again with.
        watched: A rule of the client depends on active stores.
        quiet: The store left a probe unanswered for an interval, and sent nothing since.
    """

    request: msg.Register
    address: msg.Address
    times: RegistrationTimes
    state: RegistrationState = RegistrationState.IDLE
    granted: msg.Registered | None = None
    renewals: int = 0
    asked_at: int = 0
    probed_at: int | None = None
    silence_reported: bool = False
    no_response_reported: bool = False
    timers: TimerTable = attrs.field(factory=TimerTable)
    leased: bool = True
    refused: bool = False
    passed_over: bool = False
    replaced: bool = False
    unanswered: int = 0
    reported: int = NONE
    watched: bool = False
    quiet: bool = False

    @property
    def counts(self) -> bool:
        """True if the store counts towards a quorum of registered stores."""
        return self.state in (RegistrationState.REGISTERED, RegistrationState.RENEWING)

    def has_reg_id(self, now: int) -> bool:
        """Return whether the RegID is this client's at `now` (ns), whether the store answers or not."""
        ends_at = self.timers.deadline(RegistrationTimer.LEASE)
        return self.counts if ends_at is None else now < ends_at and not self.refused

    @property
    def outdated(self) -> bool:
        """True if a later generation of the store is known than its newest grant has: it runs on an older copy."""
        granted = NONE if self.granted is None else self.granted.store_generation
        return granted != NONE and outdated(granted, self.request.known_generation)

    @property
    def present(self) -> bool:
        """True if the store granted, and nothing indicates that it is away."""
        return self.state is RegistrationState.REGISTERED

    @property
    def active(self) -> bool:
        """True if the store is present and not quiet."""
        return self.present and not self.quiet

    @property
    def failing(self) -> bool:
        """True if the store does not grant: an interval ended without a grant, or the lease ended."""
        return self.passed_over or self.state is RegistrationState.UNRESPONSIVE

    @property
    def involved(self) -> bool:
        """True if the client is registered there, or asks to be."""
        return RegistrationState.IDLE < self.state < RegistrationState.WITHDRAWING

    @property
    def left(self) -> bool:
        """True if the store knows the client no more."""
        return self.state is RegistrationState.WITHDRAWN

    def know(self, generation: int) -> None:
        """Record a generation of the store that somebody knows."""
        known = newest(generation, self.request.known_generation)
        if known != self.request.known_generation:
            self.request = attrs.evolve(self.request, known_generation=known)

    def report_copy(self, now: int, out: list[Effect]) -> None:
        """Ask a store that runs on an older copy again, once, so that it learns of the later generation."""
        known = self.request.known_generation
        if self.reported != known and self.outdated:
            self.reported = known
            self.renew(now, out)

    def start(self, reg_id: int, now: int, out: list[Effect]) -> None:
        """Begin to register, asking for `reg_id` (0: the store chooses)."""
        self.request = attrs.evolve(self.request, reg_id=reg_id)
        fire(REGISTRATION, self, RegistrationEvent.START, now, out)

    def on_answer(self, answer: msg.Registered, now: int, out: list[Effect]) -> bool:
        """Process a grant; return whether it began a new registration."""
        if not self._current(answer):
            return False
        # The store answered a repeated request again: a sign of life, not a new registration.
        if self.state is RegistrationState.REGISTERED:
            self._heard(now)
            return False
        if self.leased and answer.activity_timeout_ms and _lease_end(answer, self.asked_at) <= now:
            self.ask(now, out)  # The store may have given the RegID to another by now: this answer proves nothing.
            return False
        # A store that does not know RPP grants without it. That counts as a refusal (P-573, P-574).
        if self.request.pace is not msg.Pace.SOURCE and answer.pace is msg.Pace.SOURCE:
            fire(REGISTRATION, self, RegistrationEvent.REFUSAL, now, out, NOT_PACED)
            return False
        self.granted = answer
        return fire(REGISTRATION, self, RegistrationEvent.ANSWER, now, out)

    def on_refused(self, answer: msg.Refused, now: int, out: list[Effect]) -> None:
        """Process a refusal: report it, and ask again after the interval, because the holder may time out (T6)."""
        if self._current(answer):
            # After a grant, this reason means that another source got the RegID meanwhile (formal 7.6).
            self.replaced = self.granted is not None and answer.reason is msg.Refusal.HELD_BY_SOURCE
            fire(REGISTRATION, self, RegistrationEvent.REFUSAL, now, out, sentence(self.address, answer, self.request))

    def on_deregistered(self, answer: msg.Deregistered, near: int, now: int, out: list[Effect]) -> bool:
        """Process a store's farewell; return whether it is news. `near`: see `serial.extend`."""
        late = answer.generation != self.request.generation
        if late or not fire(REGISTRATION, self, RegistrationEvent.FORGOTTEN, now, out):
            return False
        number = serial.extend(answer.number, near)
        out.append(Notify(DeregistrationSuccess(answer.store_index, self.address, answer.reg_id, number)))
        return True

    def on_keepalive(self, now: int) -> None:
        """Process a store's answer to a probe."""
        if self.state is not RegistrationState.REGISTERED:
            return
        self._heard(now)
        if self.probed_at is not None:
            # The answer may be old, so the lease counts from the sending of the probe (formal 7.6).
            self._lease_from(self.probed_at)
            self.probed_at = None
            self.timers.set(RegistrationTimer.PROBE, now + self.times.probe_ns)

    def on_traffic(self, now: int) -> None:
        """Count any other message of the store as a sign of life."""
        # This message answers no request of the client, so it renews no lease (formal 7.6).
        if self.state is RegistrationState.REGISTERED:
            self._heard(now)

    def keepalive(self, respond: bool) -> msg.Keepalive:
        """Return the client's sign of life for this store."""
        request = self.request
        return msg.Keepalive(request.role, request.incarnation, request.reg_id, respond, request.store_index)

    def renew(self, now: int, out: list[Effect]) -> None:
        """Register again, without an event: the connection broke, or the source registered there anew (T21)."""
        fire(REGISTRATION, self, RegistrationEvent.RESET, now, out)

    def on_gone(self, now: int, out: list[Effect]) -> None:
        """Ask again: nobody listens at the store's address."""
        fire(REGISTRATION, self, RegistrationEvent.SILENCE, now, out)

    def move(self, address: msg.Address, now: int, out: list[Effect]) -> None:
        """Register at the store's new address."""
        self.address = address
        fire(REGISTRATION, self, RegistrationEvent.MOVE, now, out)

    def relocate(self, reply_to: msg.Address, transport: msg.Address, now: int, out: list[Effect]) -> None:
        """Register again, because the client has other addresses now: the store answers to those of the request."""
        self.request = attrs.evolve(self.request, reply_to=reply_to, transport=transport)
        fire(REGISTRATION, self, RegistrationEvent.MOVE, now, out)

    def park(self, now: int, out: list[Effect]) -> None:
        """Drop the store until the next start."""
        fire(REGISTRATION, self, RegistrationEvent.PARK, now, out)

    def withdraw(self, now: int, out: list[Effect]) -> None:
        """Deregister at the store."""
        fire(REGISTRATION, self, RegistrationEvent.WITHDRAW, now, out)

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        for kind in self.timers.pop_expired(now):
            if kind == RegistrationTimer.RETRY:
                fire(REGISTRATION, self, RegistrationEvent.RETRY, now, out)
            elif kind == RegistrationTimer.PROBE:
                self._probe(now, out)
            elif kind == RegistrationTimer.QUIET:
                self._judge_quiet()
            elif kind == RegistrationTimer.SILENCE:
                event = RegistrationEvent.RESET if self._asked_late(now) else RegistrationEvent.SILENCE
                fire(REGISTRATION, self, event, now, out)
            else:
                fire(REGISTRATION, self, RegistrationEvent.EXPIRED, now, out)

    # Guards and actions of the chart.

    def was_granted(self, now: int, out: list[Effect]) -> bool:
        """Return whether the store knows the client."""
        return self.granted is not None

    def ask(self, now: int, out: list[Effect], *_: object) -> None:
        """Send the first request of a new generation."""
        self._next_generation()
        # All repeats share this generation, so the lease counts from the first of them (formal 7.6).
        self.asked_at, self.unanswered = now, 0
        self._stop_watching()
        self.repeat(now, out)

    def repeat(self, now: int, out: list[Effect], *_: object) -> None:
        """Send the request (again)."""
        out.append(Send(self.address, self.request))
        self.timers.set(RegistrationTimer.RETRY, now + self.times.interval_ns)

    def grant(self, now: int, out: list[Effect], *_: object) -> None:
        """Start the lease and the probes, and ask for the granted RegID from now on."""
        assert self.granted is not None
        self.request = attrs.evolve(self.request, reg_id=self.granted.reg_id)
        self.renewals += 1
        self.probed_at = None
        self.silence_reported = self.no_response_reported = False
        self.refused = self.passed_over = self.replaced = False
        self.timers.stop(RegistrationTimer.RETRY)
        self.timers.set(RegistrationTimer.PROBE, now + self.times.probe_ns)
        self._heard(now)
        self._lease_from(self.asked_at)

    def report_refusal(self, now: int, out: list[Effect], reason: str) -> None:
        """Report the cause; the next try comes with the interval. An answer ends an absence of the store."""
        self.refused = True
        self.silence_reported = self.no_response_reported = False
        out.append(Notify(RegistrationError(self.request.store_index, self.address, reason)))
        self.timers.set(RegistrationTimer.RETRY, now + self.times.interval_ns)

    def report_no_response(self, now: int, out: list[Effect]) -> None:
        """Report once for each absence that requests had no answer. A store that refused has answered."""
        answered, self.refused, self.passed_over = self.refused, False, True
        self.unanswered = 0 if answered else min(self.unanswered + 1, self._tries)
        if (self.silence_reported or self.unanswered == self._tries) and not self.no_response_reported:
            self.no_response_reported = True
            self._unresponsive(" - no registration response.", out)

    def report_silence(self, now: int, out: list[Effect]) -> None:
        """Report once for each absence a silent store or a refused connection."""
        if not self.silence_reported:
            self.silence_reported = True
            self._unresponsive("", out)

    def report_expiry(self, now: int, out: list[Effect]) -> None:
        """Report the end of the lease, unless this process let it end because it did not run."""
        if not self._asked_late(now):
            self.report_silence(now, out)

    def take_leave(self, now: int, out: list[Effect]) -> None:
        """Send the first deregistration."""
        self.rest(now, out)
        self._next_generation()
        self.repeat_farewell(now, out)

    def repeat_farewell(self, now: int, out: list[Effect]) -> None:
        """Send the deregistration (again)."""
        asked = self.request
        key = (asked.role, asked.store_index, asked.generation, asked.reg_id, asked.incarnation, asked.source_reg_id)
        out.append(Send(self.address, msg.Deregister(*key, asked.reply_to)))
        self.timers.set(RegistrationTimer.RETRY, now + self.times.interval_ns)

    def rest(self, now: int, out: list[Effect]) -> None:
        """Stop all timers."""
        self.probed_at, self.quiet, self.timers = None, False, TimerTable()
        self.silence_reported = self.no_response_reported = False
        self.refused = self.passed_over = self.replaced = False

    @property
    def _tries(self) -> int:
        """Requests without an answer after which a store counts as silent."""
        return -(-self.times.silence_ns // self.times.interval_ns)

    @property
    def _patience(self) -> int:
        """Time for the answer to a probe (ns), after which a store counts as silent."""
        return max(self.times.interval_ns, self.times.silence_ns - self.times.probe_ns)

    def _asked_late(self, now: int) -> bool:
        """Return whether no probe has waited for long: the process did not run when it was due."""
        return self.probed_at is None or now - self.probed_at < self._patience

    def _current(self, answer: msg.Registered | msg.Refused) -> bool:
        return self.involved and answer.generation == self.request.generation

    def _next_generation(self) -> None:
        self.request = attrs.evolve(self.request, generation=(self.request.generation + 1) % msg.GENERATIONS)

    def _unresponsive(self, suffix: str, out: list[Effect]) -> None:
        index = self.request.store_index
        text = f"store {index} [{self.address}] unresponsive{suffix}"
        out.append(Notify(StoreUnresponsive(index, self.address, text)))

    def _stop_watching(self) -> None:
        self.probed_at, self.quiet = None, False
        self.timers.stop(RegistrationTimer.QUIET)
        self.timers.stop(RegistrationTimer.PROBE)
        self.timers.stop(RegistrationTimer.SILENCE)

    def _heard(self, now: int) -> None:
        self.quiet = False
        self.timers.set(RegistrationTimer.SILENCE, now + self.times.silence_ns)

    def _lease_from(self, sent_at: int) -> None:
        assert self.granted is not None
        if self.leased and self.granted.activity_timeout_ms:
            self.timers.set(RegistrationTimer.LEASE, _lease_end(self.granted, sent_at))

    def _probe(self, now: int, out: list[Effect]) -> None:
        if self.counts and self.probed_at is None:
            self.probed_at = now
            out.append(Send(self.address, self.keepalive(respond=True)))
            if self.watched:
                self.timers.set(RegistrationTimer.QUIET, now + self.times.interval_ns)

    def _judge_quiet(self) -> None:
        silence = self.timers.deadline(RegistrationTimer.SILENCE)
        if self.probed_at is not None and silence is not None:
            self.quiet = silence - self.times.silence_ns <= self.probed_at


def _lease_end(grant: msg.Registered, sent_at: int) -> int:
    timeout = grant.activity_timeout_ms * MILLISECOND
    return sent_at + timeout - timeout // LEASE_MARGIN


_S = RegistrationState
_E = RegistrationEvent
_THERE = (_S.REGISTERED, _S.RENEWING)  # Only a store that stays away loses its turn (P-503).
REGISTRATION = lower(
    RegistrationChart,
    Registration,
    RegistrationState,
    RegistrationEvent,
    ignore={
        _S.IDLE: set(_E) - {_E.START, _E.WITHDRAW},
        _S.REGISTERING: (_E.RESET, _E.SILENCE, _E.EXPIRED, _E.FORGOTTEN),
        _S.REGISTERED: (_E.ANSWER, _E.REFUSAL, _E.RETRY, _E.FORGOTTEN),
        _S.RENEWING: (_E.RESET, _E.FORGOTTEN),
        _S.UNRESPONSIVE: (_E.RESET, _E.SILENCE, _E.EXPIRED, _E.FORGOTTEN),
        _S.WITHDRAWING: set(_E) - {_E.START, _E.RETRY, _E.FORGOTTEN},
        _S.WITHDRAWN: set(_E) - {_E.START},
    },
    reject={**dict.fromkeys(set(_S) - {_S.IDLE}, (_E.START,)), **dict.fromkeys(_THERE, (_E.START, _E.PARK))},
)
