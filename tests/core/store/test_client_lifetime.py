"""Lifetime: the two spans of a client, and what ends them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.settings import STATE_FOR_EVER
from stablecast.core.store.client_lifetime import Lifetime, LifetimeState
from tests.support.abstract_states import abstract


def client(activity_ns: int = 30, lifetime_ns: int = 0) -> Lifetime:
    return Lifetime(activity_ns, lifetime_ns, heard_at=100)


@pytest.mark.rows("P-532", "P-533", "P-534", "P-535")
@pytest.mark.parametrize(("lifetime_ns", "deleted"), [(0, 130), (10, 130), (30, 130), (50, 150)])
def test_deleted_when_both_spans_are_over(lifetime_ns: int, deleted: int) -> None:
    """At the activity timeout the RegID is free, at the longer of both the state goes."""
    silent = client(lifetime_ns=lifetime_ns)
    assert not silent.check(129)
    assert abstract(silent) == "ACTIVE"
    if deleted > 130:
        assert not silent.check(130)
        assert abstract(silent) == "INACTIVE"
        assert not silent.check(deleted - 1)
    assert silent.check(deleted)
    assert abstract(silent) == "EXPIRED"
    assert not silent.check(deleted + 1)


def test_a_lifetime_without_an_end_frees_the_reg_id_and_keeps_the_state() -> None:
    for kept in (client(lifetime_ns=STATE_FOR_EVER), client(lifetime_ns=2 * STATE_FOR_EVER)):
        assert kept.next_timeout() == 130
        assert not kept.check(130)
        assert not kept.active
        assert kept.next_timeout() is None
        assert not kept.check(1 << 80)
        kept.on_heard(1 << 80)
        assert kept.active
    almost = client(lifetime_ns=STATE_FOR_EVER - 1)
    assert almost.check(100 + STATE_FOR_EVER - 1)


def test_a_sign_of_life_starts_both_spans_anew() -> None:
    known = client(lifetime_ns=50)
    known.check(140)
    known.on_heard(140)
    assert known.active
    assert not known.check(169)
    assert known.active
    known.check(170)
    assert not known.active


def test_a_process_that_ended_frees_its_reg_id_and_keeps_its_state() -> None:
    gone = client()
    gone.on_gone(101)
    gone.on_gone(102)
    assert not gone.active
    assert not gone.check(129)
    assert gone.check(130)
    gone.on_heard(131)
    gone.on_gone(131)
    assert gone.state is LifetimeState.EXPIRED


@given(st.lists(st.tuples(st.sampled_from(["heard", "gone", "check"]), st.integers(0, 40)), max_size=20))
def test_state_follows_from_the_last_sign_of_life(steps: list[tuple[str, int]]) -> None:
    machine, now = client(activity_ns=30, lifetime_ns=60), 100
    heard, gone, expired = now, False, False
    for step, span in steps:
        now += span
        if step == "heard":
            machine.on_heard(now)
            heard, gone = (heard, gone) if expired else (now, False)
        elif step == "gone":
            machine.on_gone(now)
            gone = True
        else:
            due = not expired and now - heard >= 60
            assert machine.check(now) is due
            gone = gone or now - heard >= 30
            expired = expired or due
        assert machine.active is not (gone or expired)


@pytest.mark.rows("P-835")
def test_it_is_known_when_to_look_next() -> None:
    """Looking then is soon enough, whatever the state."""
    known = client(lifetime_ns=50)
    assert known.next_timeout() == 130
    known.check(130)
    assert known.next_timeout() == 150
    known.check(150)
    assert known.next_timeout() is None
