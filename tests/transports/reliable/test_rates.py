"""Rate limits: data is queued at the limit and then blocked, retransmissions are queued and then shed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.reliable import rates
from stablecast.transports.reliable.rates import QueuedDatagram, RateLimiter, RepairVerdict
from stablecast.transports.reliable.settings import LBTRM_RATES, LBTRU_RATES, RateSettings

MS = MILLISECOND
PER_INTERVAL = RateSettings(10 * MS, data_bits=800_000, repair_bits=400_000)
"""1000 bytes of data, 500 of repairs."""
SHARED = RateSettings(10 * MS, data_bits=800_000, repair_bits=400_000, repairs_count=True)


def data(number: int, size: int = 400, session: int = 1) -> QueuedDatagram:
    return QueuedDatagram(session, number, size)


def test_the_defaults_are_the_documented_ones() -> None:
    assert (LBTRM_RATES.interval_ns, LBTRM_RATES.repairs_count) == (10 * MS, True)
    assert (LBTRU_RATES.interval_ns, LBTRU_RATES.repairs_count) == (100 * MS, False)
    assert LBTRM_RATES.data_bits == LBTRU_RATES.data_bits == 2 * LBTRM_RATES.repair_bits == 10_000_000


def test_the_datagram_over_the_limit_is_queued_and_the_next_send_is_blocked() -> None:
    """A runner-up of the traps: the datagram over the limit succeeds, later ones wait."""
    limiter = RateLimiter(PER_INTERVAL)
    assert limiter.admit(data(0), 0)
    assert limiter.admit(data(1), 9 * MS)
    assert limiter.next_release() is None
    assert not limiter.admit(data(2), 9 * MS)
    assert len(limiter.data) == 1
    assert not limiter.admit(data(3, 1), 9 * MS), "nothing overtakes what waits"
    blocked = limiter.blocked
    assert blocked
    assert limiter.next_release() == 10 * MS
    assert limiter.release(9 * MS) == ([], [])
    assert limiter.release(10 * MS) == ([], [data(2), data(3, 1)])
    assert not limiter.blocked
    assert limiter.next_release() is None


def test_unused_bytes_are_not_carried_over() -> None:
    limiter = RateLimiter(PER_INTERVAL)
    assert limiter.admit(data(0, 1), 0)
    assert limiter.admit(data(1, 1000), 50 * MS)
    assert not limiter.admit(data(2, 1), 50 * MS)


def test_a_datagram_larger_than_an_interval_has_one_of_its_own() -> None:
    limiter = RateLimiter(PER_INTERVAL)
    assert limiter.admit(data(0, 5000), 0)
    assert not limiter.admit(data(1, 1), 0)
    assert limiter.release(10 * MS) == ([], [data(1, 1)])
    assert not limiter.admit(data(2, 5000), 10 * MS)
    assert limiter.release(20 * MS) == ([], [data(2, 5000)])


def test_retransmissions_are_queued_and_then_shed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MAX_QUEUED_REPAIRS", 2)
    limiter = RateLimiter(PER_INTERVAL)
    verdicts = [limiter.repair(data(number, 300), 0) for number in range(4)]
    assert verdicts == [RepairVerdict.SENT, RepairVerdict.QUEUED, RepairVerdict.QUEUED, RepairVerdict.SHED]
    assert not limiter.blocked, "data is not held up by them"
    assert limiter.release(10 * MS) == ([data(1, 300)], [])
    assert limiter.next_release() == 20 * MS
    assert limiter.release(20 * MS) == ([data(2, 300)], [])


def test_retransmissions_count_as_data_where_they_share_the_limit() -> None:
    """LBT-RM: in the next interval retransmissions leave first because they are older."""
    limiter = RateLimiter(SHARED)
    assert limiter.repair(data(0, 500), 0) is RepairVerdict.SENT
    assert limiter.admit(data(9, 500), 0)
    assert not limiter.admit(data(10, 500), 0)
    assert limiter.repair(data(1, 500), 0) is RepairVerdict.QUEUED
    assert limiter.release(10 * MS) == ([data(1, 500)], [data(10, 500)])


def test_a_repair_waits_for_data_allowance_where_it_is_shared() -> None:
    limiter = RateLimiter(SHARED)
    assert limiter.admit(data(0, 1000), 0)
    assert limiter.repair(data(1, 100), 0) is RepairVerdict.QUEUED
    alone = RateLimiter(PER_INTERVAL)
    assert alone.admit(data(0, 1000), 0)
    assert alone.repair(data(1, 100), 0) is RepairVerdict.SENT


def test_waiting_datagrams_of_a_session_or_a_client_can_be_dropped() -> None:
    limiter = RateLimiter(RateSettings(10 * MS, data_bits=800, repair_bits=800))
    assert limiter.admit(data(0, 1), 0)
    limiter.repair(data(0, 1), 0)
    for session in (1, 2):
        limiter.admit(data(1, session=session), 0)
        for to in ("a", "b"):
            limiter.repair(QueuedDatagram(session, 1, 9, to), 0)
    limiter.forget(1, "a")
    assert [(item.session, item.to) for item in limiter.repairs] == [(1, "b"), (2, "a"), (2, "b")]
    assert len(limiter.data) == 2
    limiter.forget(1)
    assert [item.session for item in (*limiter.data, *limiter.repairs)] == [2, 2, 2]


@given(st.lists(st.lists(st.integers(1, 600), min_size=1, max_size=5), max_size=8))
def test_datagrams_admitted_together_would_be_admitted_one_by_one(runs: list[list[int]]) -> None:
    limiter, twin = RateLimiter(PER_INTERVAL), RateLimiter(PER_INTERVAL)
    for turn, sizes in enumerate(runs):
        now = turn * 4 * MS
        one_by_one = [twin.admit(data(0, size), now) for size in sizes]
        if not limiter.admits(sum(sizes), now):
            assert [limiter.admit(data(0, size), now) for size in sizes] == one_by_one
        else:
            assert all(one_by_one)
        assert (limiter.data_left, limiter.data) == (twin.data_left, twin.data)
