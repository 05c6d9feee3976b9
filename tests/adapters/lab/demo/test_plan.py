"""The crashes of a demo and their times."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.lab.demo.run import AWAY_SECONDS, KINDS, plan


@given(st.integers(20, 100_000), st.integers())
def test_each_kind_once_in_order_between_the_first_and_the_last_message(messages: int, seed: int) -> None:
    crashes = plan(messages, seed)
    places = [crash.delivered for crash in crashes]
    assert tuple(crash.kind for crash in crashes) == KINDS
    assert places == sorted(set(places))
    assert places[0] >= 1
    assert places[-1] < messages
    assert all(AWAY_SECONDS[0] <= crash.seconds <= AWAY_SECONDS[1] for crash in crashes)
    assert plan(messages, seed) == crashes


def test_seeds_differ() -> None:
    assert len({tuple(plan(1_000, seed)) for seed in range(20)}) == 20
