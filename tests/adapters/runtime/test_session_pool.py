"""The session of a new source."""

import pytest

from stablecast.client.transport_sessions import SessionPool
from stablecast.runtime.ports import PortError


class Opened:
    def __init__(self) -> None:
        self.places: list[int] = []

    def __call__(self, place: int) -> int:
        self.places.append(place)
        return 100 + len(self.places)


def test_the_pool_is_filled_first_and_then_taken_in_turn() -> None:
    pool, opened = SessionPool(), Opened()
    taken = [pool.choose("", 3, opened) for _ in range(8)]
    assert taken == [101, 102, 103, 101, 102, 103, 101, 102]
    assert opened.places == [0, 1, 2]


def test_sources_of_one_address_share_a_session_outside_the_pool() -> None:
    pool, opened = SessionPool(), Opened()
    taken = [pool.choose(name, 2, opened) for name in ("a", "b", "a", "", "")]
    assert taken == [101, 102, 101, 103, 104]


def test_a_session_ends_with_its_last_source_and_its_place_is_free() -> None:
    pool, opened = SessionPool(), Opened()
    for name in ("", "", "a", ""):
        pool.choose(name, 2, opened)
    assert not pool.leave(101)
    assert pool.leave(101)
    assert pool.leave(103)
    assert pool.choose("", 2, opened) == 104
    assert pool.choose("a", 2, opened) == 105
    assert opened.places == [0, 1, 0, 0, 0]


def test_a_session_that_cannot_be_opened_leaves_nothing() -> None:
    pool = SessionPool()

    def fails(_: int) -> int:
        raise PortError("no port")

    for name in ("", "a"):
        with pytest.raises(PortError):
            pool.choose(name, 2, fails)
    assert (pool.named, pool.pool, pool.sources) == ({}, {}, {})
