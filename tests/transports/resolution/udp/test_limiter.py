"""The records that a limit admits in an interval, and in a second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.schedule import INTERVAL, Limiter
from stablecast.transports.resolution.udp.settings import RateLimit
from tests.transports.resolution.virtual import MS


def spent(limiter: Limiter, now: int, octets: int = 100, most: int = 1_000) -> int:
    """Return the number of records that leave at once."""
    count = 0
    while count < most and limiter.admits(now):
        limiter.spend(octets, now)
        count += 1
    return count


@pytest.mark.rows("T-104", "T-108")
def test_the_number_of_records_is_limited() -> None:
    """A tenth of the limit in each interval."""
    limiter = Limiter(RateLimit(records=1_000, bits=0))
    assert spent(limiter, 0) == 100
    assert spent(limiter, INTERVAL - 1) == 0
    assert limiter.opens() == INTERVAL
    assert spent(limiter, INTERVAL) == 100


@pytest.mark.rows("T-111", "T-114")
def test_bits_are_limited_and_may_be_exceeded_by_one_record() -> None:
    """1 Mbit/s are 100,000 bits in an interval: 125 records of 800 bits, and 84 of 1200."""
    assert spent(Limiter(RateLimit(bits=1_000_000)), 0, 100) == 125
    assert spent(Limiter(RateLimit(bits=1_000_000)), 0, 150) == 84


def test_one_bit_a_second_still_sends_ten_records() -> None:
    limiter = Limiter(RateLimit(bits=1))
    assert sum(spent(limiter, now * MS) for now in range(1_000)) == 10


def test_no_limit() -> None:
    assert spent(Limiter(RateLimit(records=0, bits=0)), 0) == 1_000


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 60))
def test_no_second_from_the_first_record_on_exceeds_the_limit(waits: list[int], records: int) -> None:
    limiter = Limiter(RateLimit(records=10 * records, bits=0))
    now, sent = 0, 0
    for wait in waits:
        now += wait * MS
        if now >= SECOND:
            break
        sent += spent(limiter, now)
    assert sent <= 10 * records
