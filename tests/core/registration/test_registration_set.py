"""All of a client's registrations: when they are complete, and which store a sign of life belongs to."""

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import DeregistrationComplete, DeregistrationSuccess
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import ANY_STORE, Deregister, Deregistered, Keepalive, Refusal, Refused, Role
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.core.protocol.settings import RegistrationTimes
from stablecast.core.registration.registration_set import RegistrationSet, Rotation
from stablecast.core.registration.store_registration import Registration, RegistrationTimer
from tests.core.samples import LIFE, drain, events, register, registered, sends
from tests.support.abstract_states import abstract

TIMES = RegistrationTimes(interval_ns=10, probe_ns=100, silence_ns=300)


def enrollment(stores: int = 3, group: int = 3, started: bool = True) -> RegistrationSet:
    machine = RegistrationSet(Quorums.of(GroupRules((group,)), [0] * group))
    out: list[fx.Effect] = []
    for index in range(stores):
        registration = Registration(register(store_index=index, generation=0), f"store{index}:1", TIMES)
        machine.registrations[index] = registration
        if started:
            registration.start(0, 0, out)
    machine.open(10)
    return machine


def grant(machine: RegistrationSet, *indices: int) -> None:
    for index in indices:
        machine.on_answer(registered(store_index=index), 1, [])


def test_an_empty_enrollment_is_complete() -> None:
    machine = RegistrationSet(Quorums(GroupRules(), ()))
    assert not machine
    assert machine.complete
    assert machine.next() is None


@pytest.mark.parametrize(("granted", "at_once", "later"), [((0,), 0, 0), ((0, 2), 0, 1), ((0, 1, 2), 1, 1)])
def test_all_in_the_first_interval_a_quorum_later(granted: tuple[int, ...], at_once: int, later: int) -> None:
    machine = enrollment()
    grant(machine, *granted)
    machine.handle_timeout(9, [])
    assert machine.complete is bool(at_once)
    machine.handle_timeout(10, [])
    assert machine.complete is bool(later)
    assert [registration.request.store_index for registration in machine.counting] == list(granted)


def test_stores_that_count_fewer_lives_do_not_count_at_first() -> None:
    """Formal design, 7.3: they are asked again, and told the highest count; who was not asked yet hears it at once."""
    machine, out = enrollment(), list[fx.Effect]()
    machine.first_interval_over = True
    machine.registrations[2].park(0, [])
    for index, term in enumerate((2, 5)):
        machine.on_answer(registered(store_index=index, term=term), 1, [])
        machine.agree(term, 1, out)
    assert [(to, message) for to, message in sends(out)] == [
        ("store0:1", register(store_index=0, generation=2, reg_id=50, term=5))
    ]
    assert [registration.request.term for registration in machine.registrations.values()] == [5, 5, 5]
    assert (machine.mask, machine.settled, machine.complete, machine.enough) == (0b11, 0b10, False, True)
    machine.on_answer(registered(store_index=0, generation=2, term=5), 2, [])
    assert (machine.settled, machine.complete) == (0b11, True)
    machine.agree(4, 3, out)
    assert machine.term == 5


@pytest.mark.rows("P-525")
def test_a_quorum_of_every_group_must_know_the_term_of_who_returns() -> None:
    """P-525; formal design, 7.2 and 7.3."""
    machine = enrollment(stores=2)
    machine.quorums = Quorums.of(GroupRules((1, 1)), [0, 1])
    machine.returning = machine.first_interval_over = True
    for index, term in enumerate((2, 1)):
        machine.on_answer(registered(store_index=index, term=term), 1, [])
    machine.agree(2, 1, [])
    assert machine.quorums.registered(machine.settled)
    assert not machine.complete


def test_the_newest_grant_of_a_store_is_known() -> None:
    machine = enrollment()
    assert machine.granted(0) is None
    assert machine.granted(9) is None
    grant(machine, 0)
    assert machine.granted(0) == registered(store_index=0)


def test_a_quorum_is_of_the_configured_group() -> None:
    """T2: three stores of a group of five answer; two of them are not enough, although they are most of the three."""
    machine = enrollment(stores=3, group=5)
    grant(machine, 0, 1)
    machine.handle_timeout(10, [])
    assert not machine.complete
    grant(machine, 2)
    assert machine.complete


def test_answers_say_which_registration_began() -> None:
    machine = enrollment()
    assert machine.on_answer(registered(store_index=9), 1, []) is None
    assert machine.on_answer(registered(store_index=1), 1, []) is machine.registrations[1]
    assert machine.on_answer(registered(store_index=1), 2, []) is None
    refused = Refused(Role.SOURCE, 0, 1, 0, LIFE, Refusal.INCOMPATIBLE)
    out: list[fx.Effect] = []
    assert machine.on_answer(refused, 1, out) is None
    assert len(out) == 1


def alive(index: int, respond: bool = False, role: Role = Role.STORE) -> Keepalive:
    return Keepalive(role, LIFE, 50, respond, index)


def leases(machine: RegistrationSet) -> list[int | None]:
    return [r.timers.deadline(RegistrationTimer.LEASE) for r in machine.registrations.values()]


@pytest.mark.rows("P-018")
@pytest.mark.parametrize(("index", "renewed"), [(1, [1]), (ANY_STORE, [0, 1, 2]), (7, [])])
def test_a_sign_of_life_is_for_one_store(index: int, renewed: list[int]) -> None:
    """RegIDs are scoped to a store (P-018): all three gave the same one, one of them answered a probe."""
    machine = enrollment()
    grant(machine, 0, 1, 2)
    before = leases(machine)
    machine.handle_timeout(101, [])
    machine.on_keepalive(alive(index), 102, [])
    assert [at for at, (old, new) in enumerate(zip(before, leases(machine), strict=True)) if old != new] == renewed


def test_other_roles_and_other_reg_ids_are_not_ours() -> None:
    machine = enrollment()
    grant(machine, 0, 1, 2)
    out: list[fx.Effect] = []
    machine.on_keepalive(alive(0, respond=True, role=Role.SOURCE), 102, out)
    machine.on_keepalive(Keepalive(Role.STORE, LIFE, 51, True, 0), 102, out)
    assert out == []


def test_a_store_that_asks_is_answered_and_answers_nothing() -> None:
    """A question proves that the store lives, not that it heard us: the lease stays."""
    machine = enrollment()
    grant(machine, 0, 1, 2)
    machine.handle_timeout(101, [])
    before, out = leases(machine), list[fx.Effect]()
    machine.on_keepalive(alive(1, respond=True), 102, out)
    assert sends(out) == [("store1:1", Keepalive(Role.SOURCE, LIFE, 50, False, 1))]
    assert leases(machine) == before
    assert machine.registrations[1].timers.deadline(RegistrationTimer.SILENCE) == 402


def test_a_broken_connection_concerns_one_store() -> None:
    machine = enrollment()
    grant(machine, 0, 1, 2)
    out: list[fx.Effect] = []
    machine.on_broken(Reset("store1:1"), 20, out)
    assert [to for to, _ in sends(drain(out))] == ["store1:1"]
    machine.on_broken(Gone("store2:1"), 20, out)
    assert [to for to, _ in sends(out)] == ["store2:1"]
    assert [name for name, _, _ in abstract(machine)] == ["REGISTERED", "RENEWING", "RENEWING"]
    assert machine.enough


def test_time_is_that_of_the_earliest() -> None:
    machine = enrollment(started=False)
    assert machine.next() == 10
    machine.registrations[2].start(0, -5, [])
    assert machine.next() == 5


def test_every_group_is_heard_by_those_that_may_have_lived_before() -> None:
    """Formal design, 7.2: two groups of one store, any of which is enough otherwise."""
    for returning in (False, True):
        machine = RegistrationSet(Quorums.of(GroupRules((1, 1)), [0, 1]), returning=returning, first_interval_over=True)
        for index in range(2):
            machine.registrations[index] = Registration(register(generation=0), f"store{index}:1", TIMES)
            machine.registrations[index].start(0, 0, [])
        grant(machine, 0)
        assert machine.enough
        assert machine.complete is not returning
        grant(machine, 1)
        assert machine.complete


@pytest.mark.rows("P-203")
def test_stores_are_asked_once_and_only_where_they_are_known_to_be() -> None:
    """One of them is known by name only."""
    machine, out = enrollment(started=False), list[fx.Effect]()
    machine.registrations[1].address = ""
    machine.ask(5, out)
    assert [to for to, _ in sends(drain(out))] == ["store0:1", "store2:1"]
    machine.registrations[1].address = "store1:1"
    machine.ask(6, out)
    assert [to for to, _ in sends(out)] == ["store1:1"]


@pytest.mark.rows("P-586", "P-665")
def test_leaving_is_over_when_every_store_has_forgotten() -> None:
    """One store never granted, so two are asked."""
    machine, out = enrollment(), list[fx.Effect]()
    grant(machine, 0, 2)
    machine.withdraw(20, out)
    assert [(to, type(message)) for to, message in sends(drain(out))] == [
        ("store0:1", Deregister),
        ("store2:1", Deregister),
    ]
    machine.withdraw(21, out)
    assert (out, machine.left) == ([], False)
    for index, number in ((2, 9), (0, 8)):
        generation = machine.registrations[index].request.generation
        for _ in range(2):
            assert machine.on_answer(Deregistered(Role.SOURCE, index, generation, 50, LIFE, number), 22, out, 5) is None
    assert events(out) == [
        DeregistrationSuccess(2, "store2:1", 50, 9),
        DeregistrationSuccess(0, "store0:1", 50, 8),
        DeregistrationComplete(),
    ]
    assert machine.left
    assert machine.next() is None


def test_nobody_is_left_at_once() -> None:
    machine, out = RegistrationSet(Quorums(GroupRules(), ())), list[fx.Effect]()
    machine.withdraw(20, out)
    assert events(out) == [DeregistrationComplete()]


def test_a_client_that_left_answers_no_question() -> None:
    machine, out = enrollment(), list[fx.Effect]()
    grant(machine, 0, 1, 2)
    machine.withdraw(20, [])
    machine.on_keepalive(alive(0, respond=True), 21, out)
    assert out == []


@pytest.mark.rows("P-502")
def test_in_turn_the_store_whose_turn_it_is_is_everyone() -> None:
    machine, out = enrollment(started=False), list[fx.Effect]()
    machine.quorums, machine.rotation = Rotation.quorums(3), Rotation()
    machine.ask(0, out)
    assert [to for to, _ in sends(out)] == ["store0:1"]
    before = machine.everyone
    grant(machine, 0)
    assert (before, machine.everyone, machine.complete) == (False, True, True)
