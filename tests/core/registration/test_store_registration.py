"""Registration with one store: repeats, generations, silence, lease."""

from typing import Any

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import DeregistrationSuccess, RegistrationError, StoreUnresponsive
from stablecast.core.protocol.messages import (
    Deregister,
    Deregistered,
    Keepalive,
    Pace,
    Refusal,
    Refused,
    Register,
    Role,
)
from stablecast.core.protocol.refusals import sentence
from stablecast.core.protocol.settings import RegistrationTimes
from stablecast.core.registration.store_registration import (
    NOT_PACED,
    Registration,
    RegistrationState,
    RegistrationTimer,
)
from tests.core.samples import LIFE, SECOND, drain, events, register, registered, sends

TIMES = RegistrationTimes(interval_ns=10, probe_ns=100, silence_ns=300)
TIMEOUT_NS = 30 * SECOND
LEASE_NS = TIMEOUT_NS - TIMEOUT_NS // 8


class Store:
    """The registration under test and what it put out."""

    def __init__(self, times: RegistrationTimes = TIMES) -> None:
        self.machine = Registration(register(generation=0), "store:1", times)
        self.out: list[fx.Effect] = []

    def start(self, now: int = 0) -> Register:
        self.machine.start(0, now, self.out)
        return self.asked()

    def asked(self) -> Register:
        [(to, message)] = sends(drain(self.out))
        assert to == "store:1"
        assert isinstance(message, Register)
        return message

    def grant(self, now: int, **changes: Any) -> bool:
        answer = registered(**{"generation": self.machine.request.generation, **changes})
        return self.machine.on_answer(answer, now, self.out)

    def refuse(self, now: int, generation: int) -> None:
        answer = Refused(Role.SOURCE, 0, generation, 50, LIFE, Refusal.HELD_BY_SOURCE, held_ms=20_001)
        self.machine.on_refused(answer, now, self.out)

    def time(self, now: int) -> None:
        self.machine.handle_timeout(now, self.out)

    def wait(self, now: int, until: int) -> list[str]:
        """Let the time of each repetition come; return what is reported at the last of them, and nothing before."""
        for at in range(now, until, self.machine.times.interval_ns):
            self.time(at)
            assert self.texts() == []
        self.time(until)
        return self.texts()

    def texts(self) -> list[str]:
        return [event.text for event in events(drain(self.out)) if isinstance(event, StoreUnresponsive)]

    def farewell(self) -> Deregister:
        [(to, message)] = sends(drain(self.out))
        assert to == self.machine.address
        assert isinstance(message, Deregister)
        return message

    def forget(self, generation: int, number: int = 0) -> bool:
        answer = Deregistered(Role.SOURCE, 0, generation, 50, LIFE, number)
        return self.machine.on_deregistered(answer, 0, 50, self.out)

    @property
    def state(self) -> str:
        return self.machine.state.name


def granted(times: RegistrationTimes = TIMES) -> Store:
    store = Store(times)
    store.start()
    assert store.grant(5)
    assert store.out == []
    return store


def test_a_grant_that_comes_when_its_lease_is_over_proves_nothing() -> None:
    """The process was stopped meanwhile: the store may have given the RegID to another."""
    store = Store()
    store.start(now=1)
    assert not store.grant(1 + LEASE_NS)
    assert not store.machine.counts
    assert store.asked().generation == 2
    assert store.grant(LEASE_NS + 5)
    assert store.machine.timers.deadline(RegistrationTimer.LEASE) == 1 + 2 * LEASE_NS


@pytest.mark.rows("P-602", "P-658")
def test_a_store_that_does_not_answer_is_reported_when_it_was_silent_for_long() -> None:
    """Once. A process that did not run for as long has asked it once."""
    store = Store()
    store.start()
    store.time(400)
    assert store.texts() == []
    assert store.wait(410, 690) == ["store 0 [store:1] unresponsive - no registration response."]
    store.time(700)
    assert store.texts() == []


@pytest.mark.parametrize("generation", [0, 2, 127])
def test_answers_to_other_attempts_are_dropped(generation: int) -> None:
    store = Store()
    store.start()
    assert not store.grant(5, generation=generation)
    store.refuse(5, generation)
    assert store.out == []
    assert store.state == "REGISTERING"


def test_nothing_is_taken_before_the_start() -> None:
    store = Store()
    assert not store.grant(5, generation=0)
    store.refuse(5, 0)
    store.machine.on_keepalive(5)
    store.machine.on_traffic(5)
    store.machine.renew(5, store.out)
    store.machine.on_gone(5, store.out)
    assert store.out == []
    assert store.machine.timers.next() is None


def test_a_second_grant_is_a_sign_of_life_only() -> None:
    store = granted()
    assert not store.grant(50)
    assert store.machine.renewals == 1
    assert store.machine.timers.deadline(RegistrationTimer.SILENCE) == 350


@pytest.mark.rows("P-654", "P-672")
def test_a_refusal_is_told_and_asked_again_later() -> None:
    """A source and a receiver alike."""
    store = Store()
    first = store.start()
    store.refuse(4, 1)
    [event] = events(drain(store.out))
    text = "Store store:1 refused RegID 50: another context holds it for 21 s more. Use another session id, or wait."
    assert event == RegistrationError(0, "store:1", text)
    assert store.machine.timers.next() == 14
    store.time(14)
    assert first in [message for _, message in sends(store.out)]


@pytest.mark.rows("P-602", "P-654")
def test_a_store_that_refuses_is_not_called_unresponsive() -> None:
    """It answered. One that says nothing for long after that is; the turn passes on either way."""
    store = Store()
    store.start()
    store.refuse(4, 1)
    store.time(14)
    assert store.machine.failing
    assert store.texts() == []
    store.refuse(15, 1)
    store.time(25)
    assert store.texts() == []
    assert store.wait(35, 325) == ["store 0 [store:1] unresponsive - no registration response."]
    store.time(335)
    assert store.texts() == []
    assert store.grant(336)
    assert not store.machine.failing


@pytest.mark.parametrize("reason", Refusal)
def test_every_refusal_names_the_store_and_a_remedy(reason: Refusal) -> None:
    told = sentence("10.0.0.7:14567", Refused(Role.SOURCE, 0, 1, 0, LIFE, reason))
    assert told.startswith("Store 10.0.0.7:14567 refused the registration: ")
    assert told.endswith(".")
    assert "for 1 s more" in sentence("a:1", Refused(Role.RECEIVER, 0, 1, 7, LIFE, Refusal.HELD_BY_RECEIVER, held_ms=1))


@pytest.mark.rows("P-658")
def test_a_store_that_refuses_a_renewal_and_then_ends_is_reported() -> None:
    """The refusal was an answer, so its absence begins after it; reported once."""
    store = granted()
    store.machine.renew(20, store.out)
    store.refuse(21, store.asked().generation)
    store.time(31)
    assert store.texts() == []
    assert store.wait(41, 331) == ["store 0 [store:1] unresponsive - no registration response."]
    store.time(341)
    assert store.texts() == []


@pytest.mark.rows("P-658")
def test_a_refusal_ends_an_absence() -> None:
    """The store was away, refused, and is away again. Each absence is reported."""
    store = Store()
    store.start()
    assert store.wait(10, 300) == ["store 0 [store:1] unresponsive - no registration response."]
    store.refuse(305, 1)
    store.time(315)
    assert store.texts() == []
    assert store.wait(325, 615) == ["store 0 [store:1] unresponsive - no registration response."]


def test_generations_wrap() -> None:
    store = granted()
    for _ in range(127):
        store.machine.renew(20, store.out)
        store.grant(21)
    assert store.machine.request.generation == 0


def test_silence_is_told_once_and_counts_for_one_more_interval() -> None:
    store = granted()
    store.time(105)
    assert store.texts() == []
    store.time(305)
    assert store.state == "RENEWING"
    assert store.texts() == ["store 0 [store:1] unresponsive"]
    store.machine.on_gone(306, store.out)
    assert store.out == []
    assert store.machine.counts
    store.time(315)
    assert store.state == "UNRESPONSIVE"
    assert store.texts() == ["store 0 [store:1] unresponsive - no registration response."]
    store.time(325)
    store.machine.on_gone(326, store.out)
    assert store.texts() == []
    assert store.grant(330)
    assert store.state == "REGISTERED"


def test_a_client_that_did_not_run_asks_before_it_calls_a_store_silent() -> None:
    """Silence counts from a probe on: the machine was stopped, or its host had no time for it."""
    store = granted()
    store.time(2000)
    assert [type(message) for _, message in sends(store.out)] == [Keepalive, Register]
    assert (store.state, store.texts()) == ("RENEWING", [])
    assert store.wait(2010, 2300) == ["store 0 [store:1] unresponsive - no registration response."]


def test_one_probe_is_outstanding_at_a_time() -> None:
    store = granted()
    store.time(105)
    assert sends(drain(store.out)) == [("store:1", Keepalive(Role.SOURCE, LIFE, 50, True, 0))]
    store.machine.on_traffic(200)
    store.machine.timers.set(RegistrationTimer.PROBE, 205)
    store.time(205)
    assert store.out == []
    store.machine.on_keepalive(206)
    assert store.machine.timers.deadline(RegistrationTimer.PROBE) == 306
    store.machine.on_keepalive(207)
    assert store.machine.timers.deadline(RegistrationTimer.PROBE) == 306


def test_the_lease_counts_from_the_sending_of_what_was_answered() -> None:
    store = granted(RegistrationTimes(interval_ns=SECOND, probe_ns=SECOND, silence_ns=60 * SECOND))
    assert store.machine.timers.deadline(RegistrationTimer.LEASE) == LEASE_NS
    probed = 5 + SECOND
    store.time(probed)
    store.machine.on_keepalive(20 * SECOND)
    assert store.machine.timers.deadline(RegistrationTimer.LEASE) == probed + LEASE_NS


@pytest.mark.parametrize("renewing", [False, True])
def test_without_an_answer_the_lease_ends(renewing: bool) -> None:
    store = granted(RegistrationTimes(interval_ns=60 * SECOND, probe_ns=60 * SECOND, silence_ns=60 * SECOND))
    if renewing:
        store.machine.renew(LEASE_NS - 1, store.out)
        drain(store.out)
    store.time(LEASE_NS)
    assert store.state == "UNRESPONSIVE"
    assert store.texts() == []  # It was not asked since: this process did not run, or does not ask.


def test_a_lease_that_ends_although_the_store_was_asked_is_reported() -> None:
    store = granted(RegistrationTimes(interval_ns=SECOND, probe_ns=SECOND, silence_ns=60 * SECOND))
    store.machine.times = RegistrationTimes(interval_ns=SECOND, probe_ns=SECOND, silence_ns=20 * SECOND)
    store.time(5 + SECOND)
    drain(store.out)
    store.time(LEASE_NS)
    assert (store.state, store.texts()) == ("UNRESPONSIVE", ["store 0 [store:1] unresponsive"])


def test_a_store_without_a_timeout_gives_no_lease() -> None:
    store = Store()
    store.start()
    store.grant(5, activity_timeout_ms=0)
    assert not store.machine.timers.armed(RegistrationTimer.LEASE)


def test_a_probe_that_is_due_after_the_registration_ended_is_not_sent() -> None:
    store = granted()
    store.machine.renew(20, store.out)
    store.time(30)
    drain(store.out)
    store.machine.timers.set(RegistrationTimer.PROBE, 31)
    store.time(31)
    assert store.out == []
    assert store.machine.state is RegistrationState.UNRESPONSIVE


STATES = ["REGISTERING", "REGISTERED", "RENEWING", "UNRESPONSIVE"]


def in_state(state: str) -> Store:
    """A registration in this state, its outbox empty."""
    store = Store()
    store.start()
    if state != "REGISTERING":
        assert store.grant(5)
    if state in ("RENEWING", "UNRESPONSIVE"):
        store.machine.renew(20, store.out)
    if state == "UNRESPONSIVE":
        store.time(30)
    drain(store.out)
    assert store.state == state
    return store


@pytest.mark.rows("P-203", "P-207")
@pytest.mark.parametrize("state", STATES)
def test_a_store_that_moved_is_asked_where_it_is_now(state: str) -> None:
    """It goes on to count as one that broke a connection does."""
    store = in_state(state)
    counted, generation = store.machine.counts, store.machine.request.generation
    store.machine.move("elsewhere:1", 40, store.out)
    [(to, request)] = sends(drain(store.out))
    assert isinstance(request, Register)
    assert (to, request.generation) == ("elsewhere:1", generation + 1)
    assert store.machine.counts is counted
    assert not store.machine.present
    assert store.grant(41)
    assert store.machine.present


@pytest.mark.rows("P-503")
@pytest.mark.parametrize("state", ["REGISTERED", "RENEWING"])
def test_a_store_that_is_there_is_not_parked(state: str) -> None:
    """Only who stays away loses its turn."""
    store = in_state(state)
    with pytest.raises(MisuseError):
        store.machine.park(40, store.out)


@pytest.mark.parametrize("state", ["REGISTERING", "UNRESPONSIVE"])
def test_a_parked_registration_does_nothing_until_it_starts_again(state: str) -> None:
    store = in_state(state)
    reg_id = store.machine.request.reg_id
    store.machine.park(40, store.out)
    assert (store.state, store.machine.timers.next(), store.out) == ("IDLE", None, [])
    assert [store.machine.counts, store.machine.failing, store.machine.involved] == [False] * 3
    store.machine.park(41, store.out)
    store.machine.start(store.machine.request.reg_id, 42, store.out)
    assert store.asked().reg_id == reg_id
    assert store.grant(43)


@pytest.mark.rows("P-584", "P-586", "P-664")
@pytest.mark.parametrize("state", STATES[1:])
def test_a_store_that_granted_is_asked_to_forget_until_it_has(state: str) -> None:
    store = in_state(state)
    store.machine.withdraw(40, store.out)
    farewell = store.farewell()
    generation = store.machine.request.generation
    assert farewell == Deregister(Role.SOURCE, 0, generation, 50, LIFE, 0, "client:1")
    assert store.state == "WITHDRAWING"
    assert store.machine.timers.next() == 50
    store.time(50)
    assert store.farewell() == farewell
    assert not store.forget(generation - 1)
    assert not store.grant(51, generation=generation)
    store.refuse(51, generation)
    assert store.out == []
    assert store.forget(generation, number=7)
    assert events(drain(store.out)) == [DeregistrationSuccess(0, "store:1", 50, 7)]
    assert store.machine.left
    assert not store.forget(generation)
    assert (store.out, store.machine.timers.next()) == ([], None)


@pytest.mark.rows("P-573", "P-574")
@pytest.mark.parametrize(
    ("asked", "given", "granted"),
    [
        (Pace.SOURCE, Pace.SOURCE, True),
        (Pace.SOURCE, Pace.RECEIVERS, True),
        (Pace.RECEIVERS, Pace.RECEIVERS, True),
        (Pace.RECEIVERS, Pace.SOURCE, False),
        (Pace.NON_BLOCKING, Pace.SOURCE, False),
        (Pace.NON_BLOCKING, Pace.RECEIVERS, True),
    ],
)
def test_rpp_that_was_asked_for_must_be_acknowledged(asked: Pace, given: Pace, granted: bool) -> None:
    """Granted by an old store, that is an error."""
    store = Store()
    store.machine = Registration(register(generation=0, pace=asked), "store:1", TIMES)
    store.start()
    assert store.grant(5, pace=given) is granted
    told = [event.text for event in events(store.out) if isinstance(event, RegistrationError)]
    assert told == ([] if granted else [NOT_PACED])
    assert store.machine.counts is granted
