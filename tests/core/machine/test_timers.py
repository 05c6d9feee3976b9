"""TimerTable: order, arming rules, and that late or spurious looks are harmless."""

from enum import IntEnum

from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.timers import TimerTable, soonest


class Kind(IntEnum):
    RETRY = 0
    KEEPALIVE = 1
    ACTIVITY = 2


ARMING = st.tuples(st.sampled_from(["set", "stop"]), st.sampled_from(Kind), st.integers(0, 9))


def test_nothing_armed() -> None:
    timers = TimerTable()
    assert timers.next() is None
    assert timers.deadline(Kind.RETRY) is None
    assert not timers.armed(Kind.RETRY)
    assert timers.expired(10**18) == []
    assert timers.pop_expired(10**18) == []
    timers.stop(Kind.RETRY)
    assert timers == TimerTable()


def test_the_last_deadline_counts() -> None:
    timers = TimerTable()
    timers.set(Kind.RETRY, 20)
    timers.set(Kind.RETRY, 90)
    assert timers.deadline(Kind.RETRY) == 90


def test_due_kinds_come_earliest_first_and_ties_by_kind() -> None:
    timers = TimerTable()
    timers.set(Kind.ACTIVITY, 5)
    timers.set(Kind.KEEPALIVE, 5)
    timers.set(Kind.RETRY, 7)
    assert timers.expired(4) == []
    assert timers.expired(7) == [Kind.KEEPALIVE, Kind.ACTIVITY, Kind.RETRY]
    assert timers.pop_expired(5) == [Kind.KEEPALIVE, Kind.ACTIVITY]
    assert timers.next() == 7


def test_keys_are_plain_ints_for_snapshots() -> None:
    timers = TimerTable()
    timers.set(Kind.RETRY, 1)
    timers.set(Kind.KEEPALIVE, 2)
    assert [type(kind) for kind in timers.deadlines] == [int, int]
    assert TimerTable({0: 1, 1: 2}) == timers


@given(st.lists(ARMING, max_size=12), st.integers(-1, 10))
@settings(max_examples=100)
def test_against_a_list_of_what_happened(armings: list[tuple[str, Kind, int]], now: int) -> None:
    timers = TimerTable()
    twin: list[tuple[int, Kind]] = []
    for operation, kind, deadline_ns in armings:
        getattr(timers, operation)(*((kind,) if operation == "stop" else (kind, deadline_ns)))
        twin = [entry for entry in twin if entry[1] is not kind]
        if operation == "set":
            twin.append((deadline_ns, kind))
    twin.sort()
    assert timers.next() == (twin[0][0] if twin else None)
    assert [kind for kind in Kind if timers.armed(kind)] == sorted(kind for _, kind in twin)
    due = [kind for deadline_ns, kind in twin if deadline_ns <= now]
    assert timers.expired(now) == timers.pop_expired(now) == due
    assert timers.pop_expired(now) == []
    assert sorted(timers.deadlines) == sorted(kind for deadline_ns, kind in twin if deadline_ns > now)


def test_the_soonest_of_several_deadlines() -> None:
    assert soonest(7, None, 5) == 5
    assert soonest(0, 3) == 0
    assert soonest(None, None) is None
