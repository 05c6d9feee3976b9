"""A client's registration with one store, the same for sources and receivers.

    IDLE --start--> REGISTERING --answer--> REGISTERED --reset|silence|gone--> RENEWING --answer--> REGISTERED
                                            RENEWING --retry--> UNRESPONSIVE --answer--> REGISTERED

Rules that live here and nowhere else:

* A request is repeated every registration interval until it is answered (T6). All requests of one attempt share a
  *generation*, echoed in the answer: an answer to an earlier attempt is late and dropped.
* A store that falls silent, refuses connections or broke one is asked to register us again at once; it goes on to count
  until a whole interval has passed without an answer, for a restarting store must not stop the source (P-027). The
  application hears of both: "unresponsive", then "unresponsive - no registration response." (P-602).
* **Lease.** The RegID is ours until the grant's activity timeout has passed since the *sending* of the oldest request
  the store answered, less a margin for clocks of different rate. Without an answer in that time the store may have
  given the RegID to another, so the registration is over (formal design, section 7.6).
* A probe (keepalive that wants an answer) is sent when its interval is over and none is outstanding; its answer renews
  the lease from the time the probe was sent.
"""

from enum import IntEnum

import attrs
from statemachine.states import States

from stablecast.core.chart import Chart, fire, lower
from stablecast.core.effects import Effect, Notify, Send
from stablecast.core.events import RegistrationError, StoreUnresponsive
from stablecast.core.messages import GENERATIONS, Address, Keepalive, Refused, Register, Registered
from stablecast.core.timers import TimerTable
from stablecast.core.units import MILLISECOND, SECOND

LEASE_MARGIN = 8
"""One part in this many of the activity timeout is given up for the drift between two clocks."""


class RegistrationState(IntEnum):
    """Where a client stands with one store."""

    IDLE = 0
    REGISTERING = 1
    REGISTERED = 2
    RENEWING = 3
    UNRESPONSIVE = 4


class RegistrationEvent(IntEnum):
    """What can happen between a client and one store."""

    START = 0
    ANSWER = 1
    REFUSAL = 2
    RETRY = 3
    RESET = 4
    SILENCE = 5
    EXPIRED = 6


class RegistrationTimer(IntEnum):
    """RETRY: repeat the request. PROBE: ask for a sign of life. SILENCE: none came. LEASE: the RegID may be gone."""

    RETRY = 0
    PROBE = 1
    SILENCE = 2
    LEASE = 3


class RegistrationChart(Chart):
    """A client's registration with one store."""

    states = States.from_enum(RegistrationState, initial=RegistrationState.IDLE, use_enum_instance=True)

    start = states.IDLE.to(states.REGISTERING, on="ask")
    answer = (
        states.REGISTERING.to(states.REGISTERED, on="grant")
        | states.RENEWING.to(states.REGISTERED, on="grant")
        | states.UNRESPONSIVE.to(states.REGISTERED, on="grant")
    )
    refusal = (
        states.REGISTERING.to.itself(internal=True, on="report_refusal")
        | states.RENEWING.to(states.UNRESPONSIVE, on="report_refusal")
        | states.UNRESPONSIVE.to.itself(internal=True, on="report_refusal")
    )
    retry = (
        states.REGISTERING.to.itself(internal=True, on=["report_no_response", "repeat"])
        | states.RENEWING.to(states.UNRESPONSIVE, on=["report_no_response", "repeat"])
        | states.UNRESPONSIVE.to.itself(internal=True, on="repeat")
    )
    reset = states.REGISTERED.to(states.RENEWING, on="ask")
    silence = states.REGISTERED.to(states.RENEWING, on=["report_silence", "ask"]) | states.RENEWING.to.itself(
        internal=True, on="report_silence"
    )
    expired = states.REGISTERED.to(states.UNRESPONSIVE, on=["report_silence", "ask"]) | states.RENEWING.to(
        states.UNRESPONSIVE, on="report_silence"
    )


@attrs.frozen
class RegistrationTimes:
    """Spans in ns: between requests, between probes, and of a store's silence (ume_store_activity_timeout)."""

    interval_ns: int = 500 * MILLISECOND
    probe_ns: int = 1 * SECOND
    silence_ns: int = 3 * SECOND


@attrs.define
class Registration:
    """One client's registration with the store at `address`.

    `request` is the PREG to send, its RegID and generation kept current; `granted` the newest answer, or None.
    """

    request: Register
    address: Address
    times: RegistrationTimes
    state: RegistrationState = RegistrationState.IDLE
    granted: Registered | None = None
    renewals: int = 0
    asked_at: int = 0
    probed_at: int | None = None
    silence_reported: bool = False
    no_response_reported: bool = False
    timers: TimerTable = attrs.field(factory=TimerTable)

    @property
    def counts(self) -> bool:
        """Whether the store counts towards a quorum of registered stores."""
        return self.state in (RegistrationState.REGISTERED, RegistrationState.RENEWING)

    def start(self, reg_id: int, now: int, out: list[Effect]) -> None:
        """Begin to register, asking for `reg_id` (0: the store chooses)."""
        self.request = attrs.evolve(self.request, reg_id=reg_id)
        fire(REGISTRATION, self, RegistrationEvent.START, now, out)

    def on_answer(self, answer: Registered, now: int, out: list[Effect]) -> bool:
        """Take a grant; returns whether it began a new registration."""
        if self.state is RegistrationState.IDLE or answer.generation != self.request.generation:
            return False
        if self.state is RegistrationState.REGISTERED:
            self._heard(now)
            return False
        if answer.activity_timeout_ms and _lease_end(answer, self.asked_at) <= now:
            self.ask(now, out)  # The store may have given the RegID to another by now: this answer proves nothing.
            return False
        self.granted = answer
        return fire(REGISTRATION, self, RegistrationEvent.ANSWER, now, out)

    def on_refused(self, answer: Refused, now: int, out: list[Effect]) -> None:
        """Take a refusal: reported, and asked again after the interval, for the holder may time out (T6)."""
        if self.state is RegistrationState.IDLE or answer.generation != self.request.generation:
            return
        fire(REGISTRATION, self, RegistrationEvent.REFUSAL, now, out, answer.reason.text)

    def on_keepalive(self, now: int) -> None:
        """The store answered a probe."""
        if self.state is not RegistrationState.REGISTERED:
            return
        self._heard(now)
        if self.probed_at is not None:
            self._lease_from(self.probed_at)
            self.probed_at = None
            self.timers.set(RegistrationTimer.PROBE, now + self.times.probe_ns)

    def on_traffic(self, now: int) -> None:
        """Anything else came from the store."""
        if self.state is RegistrationState.REGISTERED:
            self._heard(now)

    def keepalive(self, respond: bool) -> Keepalive:
        """The client's sign of life for this store."""
        request = self.request
        return Keepalive(request.role, request.incarnation, request.reg_id, respond, request.store_index)

    def renew(self, now: int, out: list[Effect]) -> None:
        """The connection broke, or the source registered there anew (T21): register again, nothing reported."""
        fire(REGISTRATION, self, RegistrationEvent.RESET, now, out)

    def on_gone(self, now: int, out: list[Effect]) -> None:
        """Nobody listens at the store's address."""
        fire(REGISTRATION, self, RegistrationEvent.SILENCE, now, out)

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        """Do what is due at `now`."""
        for kind in self.timers.pop_expired(now):
            if kind == RegistrationTimer.RETRY:
                fire(REGISTRATION, self, RegistrationEvent.RETRY, now, out)
            elif kind == RegistrationTimer.PROBE:
                self._probe(now, out)
            elif kind == RegistrationTimer.SILENCE:
                fire(REGISTRATION, self, RegistrationEvent.SILENCE, now, out)
            else:
                fire(REGISTRATION, self, RegistrationEvent.EXPIRED, now, out)

    # Actions of the chart.

    def ask(self, now: int, out: list[Effect], *_: object) -> None:
        """Send the first request of a new generation."""
        self.request = attrs.evolve(self.request, generation=(self.request.generation + 1) % GENERATIONS)
        self.asked_at = now
        self._stop_watching()
        self.repeat(now, out)

    def repeat(self, now: int, out: list[Effect], *_: object) -> None:
        """Send the request (again)."""
        out.append(Send(self.address, self.request))
        self.timers.set(RegistrationTimer.RETRY, now + self.times.interval_ns)

    def grant(self, now: int, out: list[Effect], *_: object) -> None:
        """Registered: from now on ask for the RegID that the store gave."""
        assert self.granted is not None
        self.request = attrs.evolve(self.request, reg_id=self.granted.reg_id)
        self.renewals += 1
        self.probed_at = None
        self.silence_reported = self.no_response_reported = False
        self.timers.stop(RegistrationTimer.RETRY)
        self.timers.set(RegistrationTimer.PROBE, now + self.times.probe_ns)
        self._heard(now)
        self._lease_from(self.asked_at)

    def report_refusal(self, now: int, out: list[Effect], reason: str) -> None:
        """Tell the application why; the next try comes with the interval."""
        out.append(Notify(RegistrationError(self.request.store_index, self.address, reason)))
        self.timers.set(RegistrationTimer.RETRY, now + self.times.interval_ns)

    def report_no_response(self, now: int, out: list[Effect]) -> None:
        """Once for each time the store stays away."""
        if not self.no_response_reported:
            self.no_response_reported = True
            self._unresponsive(" - no registration response.", out)

    def report_silence(self, now: int, out: list[Effect]) -> None:
        """Once for each time: no sign of life, nobody listening, or the lease ran out."""
        if not self.silence_reported:
            self.silence_reported = True
            self._unresponsive("", out)

    def _unresponsive(self, suffix: str, out: list[Effect]) -> None:
        index = self.request.store_index
        text = f"store {index} [{self.address}] unresponsive{suffix}"
        out.append(Notify(StoreUnresponsive(index, self.address, text)))

    def _stop_watching(self) -> None:
        self.probed_at = None
        self.timers.stop(RegistrationTimer.PROBE)
        self.timers.stop(RegistrationTimer.SILENCE)

    def _heard(self, now: int) -> None:
        self.timers.set(RegistrationTimer.SILENCE, now + self.times.silence_ns)

    def _lease_from(self, sent_at: int) -> None:
        assert self.granted is not None
        if self.granted.activity_timeout_ms:
            self.timers.set(RegistrationTimer.LEASE, _lease_end(self.granted, sent_at))

    def _probe(self, now: int, out: list[Effect]) -> None:
        if self.counts and self.probed_at is None:
            self.probed_at = now
            out.append(Send(self.address, self.keepalive(respond=True)))

    def abstract(self) -> tuple[str, int, int]:
        """State, RegID asked for and generation: what the registration model sees."""
        return (self.state.name, self.request.reg_id, self.request.generation)


def _lease_end(grant: Registered, sent_at: int) -> int:
    timeout = grant.activity_timeout_ms * MILLISECOND
    return sent_at + timeout - timeout // LEASE_MARGIN


_S = RegistrationState
_E = RegistrationEvent
REGISTRATION = lower(
    RegistrationChart,
    Registration,
    RegistrationState,
    RegistrationEvent,
    ignore={
        _S.IDLE: (_E.ANSWER, _E.REFUSAL, _E.RETRY, _E.RESET, _E.SILENCE, _E.EXPIRED),
        _S.REGISTERING: (_E.RESET, _E.SILENCE, _E.EXPIRED),
        _S.REGISTERED: (_E.ANSWER, _E.REFUSAL, _E.RETRY),
        _S.RENEWING: (_E.RESET,),
        _S.UNRESPONSIVE: (_E.RESET, _E.SILENCE, _E.EXPIRED),
    },
    reject={
        _S.REGISTERING: (_E.START,),
        _S.REGISTERED: (_E.START,),
        _S.RENEWING: (_E.START,),
        _S.UNRESPONSIVE: (_E.START,),
    },
)
