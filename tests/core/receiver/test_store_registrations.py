"""A receiver's registrations: the stores of an SRI that it registers with, and when it registers again."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import RegistrationChange, RegistrationError, RegistrationFlag, RegistrationSuccess
from stablecast.core.protocol.messages import Pace, Refusal, Refused, Register, Registered, Role, StoreEntry
from stablecast.core.protocol.quorum import Consensus
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.core.receiver.store_registrations import StoreRegistrations
from tests.core.drivers import code
from tests.core.samples import LIFE, drain, events, info, registered, sends

SOURCE = Target("source:1", 0)


def enlistment(**changes: Any) -> StoreRegistrations:
    return StoreRegistrations(ReceiverConfig("topic", LIFE, "me:1", **changes))


@pytest.mark.rows("P-675")
def test_the_application_is_asked_for_a_reg_id() -> None:
    machine, out = enlistment(), list[fx.Effect]()
    machine.begin(info(1, 1, group_sizes=(3,)), 0, out)
    assert drain(out) == [fx.AskRegId(0, "store0:1", 50), fx.AskRegId(1, "store1:1", 50)]
    assert machine.enrollment.quorums.rules.sizes == (3,)
    assert machine.enrollment.next() == machine.config.times.interval_ns
    machine.on_reg_id(1, 33, 5, out)
    [(to, message)] = sends(drain(out))
    assert isinstance(message, Register)
    assert (to, message.reg_id, message.source_reg_id) == ("store1:1", 33, 50)


def test_an_answer_that_nobody_asked_for_has_no_effect() -> None:
    machine, out = enlistment(), list[fx.Effect]()
    machine.begin(info(1), 0, out)
    machine.on_reg_id(0, 33, 5, out)
    drain(out)
    machine.on_reg_id(0, 34, 5, out)
    machine.on_reg_id(9, 34, 5, out)
    assert out == []


def test_a_session_id_stands_for_the_reg_ids() -> None:
    machine, out = enlistment(session_id=9), list[fx.Effect]()
    machine.begin(info(1, 1), 0, out)
    requests = [message for _, message in sends(out)]
    assert [(message.reg_id, message.session_id) for message in requests if isinstance(message, Register)] == [
        (0, 9),
        (0, 9),
    ]


@pytest.mark.rows("P-673")
def test_only_stores_that_changed_are_asked_again() -> None:
    """T21."""
    machine, out = enlistment(session_id=9), list[fx.Effect]()
    machine.begin(info(1, 1, 1), 0, out)
    for index in range(3):
        machine.enrollment.on_answer(registered(store_index=index), 1, out)
    drain(out)
    machine.on_info(info(1, 2, 1, version=2), 5, out)
    assert [to for to, _ in sends(out)] == ["store1:1"]
    assert events(out) == [RegistrationChange("registering again with store 1 [store1:1]")]
    drain(out)
    machine.on_info(info(1, 2, 1, version=2), 6, out)
    assert out == []


@pytest.mark.rows("P-207", "P-673")
def test_a_store_that_moved_is_asked_where_it_is_now() -> None:
    """The source found it by its name, its receivers hear of it by the SRI."""
    machine, out = enlistment(session_id=9), list[fx.Effect]()
    machine.begin(info(1), 0, out)
    drain(out)
    moved = (StoreEntry(0, 0, "elsewhere:1", 50, 2),)
    machine.on_info(info(1, stores=moved, version=2), 5, out)
    assert [to for to, message in sends(out) if isinstance(message, Register)] == ["elsewhere:1"]
    assert events(drain(out)) == [RegistrationChange("registering again with store 0 [elsewhere:1]")]
    machine.on_info(info(1, stores=moved, version=3), 6, out)
    assert out == []


def test_a_store_that_calls_the_source_otherwise_is_new() -> None:
    machine, out = enlistment(session_id=9), list[fx.Effect]()
    machine.begin(info(1), 0, out)
    machine.enrollment.on_answer(registered(), 1, out)
    drain(out)
    changed = info(2, version=2)
    entry = attrs.evolve(changed.stores[0], source_reg_id=51)
    machine.on_info(attrs.evolve(changed, stores=(entry,)), 5, out)
    assert not machine.enrollment.enough
    assert [message.source_reg_id for _, message in sends(out) if isinstance(message, Register)] == [51]


def grouped(*groups: int, sizes: tuple[int, ...], version: int = 1) -> Any:
    stores = tuple(StoreEntry(index, group, f"store{index}:1", 50, 1) for index, group in enumerate(groups))
    return info(stores=stores, group_sizes=sizes, version=version)


def begun(*groups: int, sizes: tuple[int, ...], **changes: Any) -> StoreRegistrations:
    machine = enlistment(session_id=9, **changes)
    machine.begin(grouped(*groups, sizes=sizes), 0, [])
    return machine


def grant(machine: StoreRegistrations, index: int, high: int = 60, **changes: Any) -> list[Any]:
    out: list[fx.Effect] = []
    answer: Registered = registered(store_index=index, role=Role.RECEIVER, high=high, **changes)
    machine.on_answer(answer, 0, 0, out)
    return events(out)


def test_a_quorum_of_a_group_completes() -> None:
    """C-30: groups of three and one; two of the first are enough after the first interval, and so is the second."""
    for granting in [(0, 1), (3,)]:
        machine = begun(0, 0, 0, 1, sizes=(3, 1))
        for index in granting:
            grant(machine, index)
        assert machine.enrollment.enough
        assert not machine.enrollment.complete
    machine = begun(0, 0, 0, 1, sizes=(3, 1))
    grant(machine, 0)
    assert not machine.enrollment.enough


def test_stores_that_come_later_join_their_group() -> None:
    machine = begun(0, 0, sizes=(5,))
    machine.on_info(grouped(0, 0, 0, sizes=(5,), version=2), 0, [])
    assert machine.enrollment.quorums.members == (0b111,)


def test_impossible_groups_make_one() -> None:
    """Entries that contradict the sizes: an index beyond them, or a group that has no stores."""
    for groups, sizes, size in [((0, 2), (1, 1), 2), ((0, 1), (3, 0), 3), ((0, 0), (), 2)]:
        machine, out = enlistment(session_id=9), list[fx.Effect]()
        machine.begin(grouped(*groups, sizes=sizes), 0, out)
        assert code(events(out)) == ["wrong-group"]
        assert machine.enrollment.quorums.rules.sizes == (size,)
        assert machine.enrollment.quorums.members == (0b11,)


@pytest.mark.rows("P-332", "P-666", "P-668")
def test_a_success_says_all_there_is_to_know() -> None:
    flag = RegistrationFlag
    machine = begun(0, 0, 0, sizes=(3,), pace=Pace.NON_BLOCKING)
    told = grant(machine, 0, reg_id=70, low=4, old=True, pace=Pace.NON_BLOCKING)
    flags = flag.OLD | flag.RPP | flag.NON_BLOCKING | flag.SESSION
    assert told == [RegistrationSuccess(0, "store0:1", 70, 50, 4, flags)]
    told = grant(machine, 1, pace=Pace.RECEIVERS)
    assert code(told) == ["made-blocking"]
    assert told[-1].flags == flag.RPP | flag.SESSION
    machine = enlistment()
    machine.begin(info(1), 0, [])
    machine.on_reg_id(0, 33, 0, [])
    assert grant(machine, 0, no_cache=True)[-1].flags == flag.NO_CACHE


@pytest.mark.rows("P-573", "P-574", "P-669")
def test_a_store_that_does_not_know_rpp_does_not_count() -> None:
    """Granted, but with an error."""
    machine = begun(0, sizes=(1,), pace=Pace.RECEIVERS)
    [told] = grant(machine, 0)
    assert isinstance(told, RegistrationError)
    assert told.text.startswith("granted - error")
    assert not machine.enrollment.enough


@pytest.mark.rows("P-672")
def test_a_refusal_begins_nothing() -> None:
    machine, out = begun(0, sizes=(1,)), list[fx.Effect]()
    assert machine.on_answer(Refused(Role.RECEIVER, 0, 1, 0, LIFE, Refusal.OTHER_TOPIC), 0, 0, out) is None
    assert [type(event) for event in events(out)] == [RegistrationError]


@pytest.mark.rows("P-417", "P-418")
def test_stores_that_know_the_receiver_say_where_it_goes_on() -> None:
    """In two groups, of which the second lags behind."""
    for consensus, low in [(Consensus.HIGHEST, 31), (Consensus.MAJORITY, 21), (Consensus.LOWEST, 6)]:
        machine = begun(0, 0, 0, 1, 1, 1, sizes=(3, 3), consensus=consensus)
        for index, number in enumerate((31, 21, 11, 9, 8)):
            grant(machine, index, low=number, old=True)
        grant(machine, 5, low=6, old=True)
        assert machine.low(60) == low


@pytest.mark.rows("P-420")
def test_a_new_receiver_begins_at_the_lowest_number_on_offer() -> None:
    """Stores without a cache offer nothing."""
    machine = begun(0, 0, 0, sizes=(3,))
    grant(machine, 0, low=1, no_cache=True)
    assert machine.low(60) == 61
    grant(machine, 1, low=20)
    grant(machine, 2, low=10)
    assert machine.low(60) == 10


@pytest.mark.rows("P-572")
def test_a_new_receiver_that_sets_the_pace_begins_behind_all_that_went() -> None:
    """Messages that one store let go of were consumed by all; formal design, 7.8."""
    machine = begun(0, 0, sizes=(2,), pace=Pace.RECEIVERS)
    grant(machine, 0, low=20, pace=Pace.RECEIVERS)
    grant(machine, 1, low=10, pace=Pace.RECEIVERS)
    assert machine.low(60) == 20


@pytest.mark.parametrize(("acknowledged", "low"), [(None, 4), (9, 9)], ids=["nothing acknowledged", "acknowledged"])
def test_a_receiver_that_returns_gets_what_a_store_kept_for_it(acknowledged: int | None, low: int) -> None:
    """A store that was away when it registered released messages that the others keep for it."""
    machine = begun(0, 0, 0, 0, sizes=(4,), pace=Pace.RECEIVERS)
    grant(machine, 0, low=20, pace=Pace.RECEIVERS)
    grant(machine, 1, low=0, known=4, pace=Pace.RECEIVERS)
    grant(machine, 2, low=6, known=6, pace=Pace.RECEIVERS)
    if acknowledged is not None:
        grant(machine, 3, low=acknowledged, old=True, pace=Pace.RECEIVERS)
    assert machine.low(60) == low


def test_a_store_without_a_cache_knows_where_the_receiver_was() -> None:
    machine = begun(0, 0, sizes=(2,))
    grant(machine, 0, low=30, old=True, no_cache=True)
    grant(machine, 1, low=10)
    assert machine.low(60) == 30


@pytest.mark.rows("P-429")
def test_those_who_keep_messages_are_asked() -> None:
    """The source where there is no store, or none that keeps any."""
    assert enlistment().targets(SOURCE) == [SOURCE]
    machine = begun(0, 0, sizes=(2,))
    assert machine.targets(SOURCE) == []
    grant(machine, 0, no_cache=True)
    assert machine.targets(SOURCE) == [SOURCE]
    grant(machine, 1)
    assert machine.targets(SOURCE) == [Target("store1:1", 50)]
    machine.enrollment.registrations[1].renew(5, [])
    assert machine.targets(SOURCE) == []


def test_giving_up_needs_every_group() -> None:
    """Formal design, 7.2; the documented receiver is content with what completed its registration."""
    for repairs, expected in [(Repair.ALL, [False, True]), (Repair.ALL & ~Repair.EVERY_GROUP, [True, True])]:
        machine = begun(0, 1, sizes=(1, 1), repairs=repairs)
        assert not machine.may_give_up
        for index, may in enumerate(expected):
            grant(machine, index)
            assert machine.may_give_up is may
    assert enlistment().may_give_up


def test_the_lease_is_kept_with_the_repair_only() -> None:
    for repairs in (Repair.ALL, Repair.NONE):
        machine = begun(0, sizes=(1,), repairs=repairs)
        assert machine.enrollment.registrations[0].leased is (Repair.LEASE in repairs)
