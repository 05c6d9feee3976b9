"""Deadlines, where None is no deadline."""

from stablecast.transports.reliable.deadlines import soonest


def test_the_first_to_come_counts_and_none_is_none() -> None:
    assert soonest(7, None, 5) == 5
    assert soonest(0, 3) == 0
    assert soonest(None, None) is None
