"""The number of stores that is enough: cached answers equal computed ones."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import StableAck
from stablecast.evidence.trace.quorums import Acknowledged

LIFE = 1
RANGES = st.tuples(st.integers(0, 30), st.integers(0, 30))


def naive(stores: Acknowledged, first: int, stop: int) -> tuple[int, list[int]] | None:
    """Search the first number that too few hold, one by one."""
    for number in range(first, stop):
        holders = [store for store, held in enumerate(stores.acked) if number in held]
        if not stores.suffice(holders):
            return number, holders
    return None


@given(st.lists(st.tuples(st.integers(0, 2), RANGES, RANGES), max_size=20))
def test_the_first_lacking_number_is_the_first_that_too_few_hold(
    steps: list[tuple[int, tuple[int, int], tuple[int, int]]],
) -> None:
    stores = Acknowledged(LIFE, [([0, 1, 2], 2)], 1, 40, [RangeSet() for _ in range(3)])
    for store, (first, last), (low, stop) in steps:
        stores.on_acked(StableAck(store, LIFE, first, last))
        assert stores.lacking(low, stop) == naive(stores, low, stop)
