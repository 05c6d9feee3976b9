"""A context's cache of sources."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.cache import SourceCache
from stablecast.transports.resolution.udp.settings import CacheOptions


def record(index: int) -> SourceRecord:
    return SourceRecord("10.0.0.1:14371", 7, index)


@pytest.mark.rows("T-005", "T-013")
def test_sources_by_topic() -> None:
    cache = SourceCache()
    cache.heard("orders", record(1), 0)
    cache.heard("orders", record(2), 0)
    cache.heard("trades", record(3), 0)
    assert cache.of("orders") == (record(1), record(2))
    assert list(cache.matching(re.compile("^t"))) == ["trades"]
    cache.forget("orders", record(1))
    cache.forget("orders", record(1))
    cache.forget_topic("trades")
    cache.forget_topic("nobody's")
    assert (cache.of("orders"), cache.of("trades"), len(cache)) == ((record(2),), (), 1)


@pytest.mark.rows("T-015")
def test_a_source_that_is_made_anew_is_there_twice() -> None:
    """No message ends the first one; the expiry, an extension of ours, forgets it."""
    cache = SourceCache(CacheOptions(forget_after=60 * SECOND))
    cache.heard("orders", record(1), 0)
    cache.heard("orders", record(2), 30 * SECOND)
    assert len(cache.of("orders")) == 2
    cache.heard("orders", record(2), 50 * SECOND)
    assert cache.next() == 60 * SECOND
    cache.expire(60 * SECOND)
    assert cache.of("orders") == (record(2),)
    cache.expire(110 * SECOND)
    assert (cache.expired, cache.next()) == (2, None)


@pytest.mark.rows("T-015")
def test_without_expiry_nothing_is_forgotten() -> None:
    """T-015, as documented."""
    cache = SourceCache()
    cache.heard("orders", record(1), 0)
    cache.expire(10**9 * SECOND)
    assert (cache.next(), len(cache)) == (None, 1)


def test_it_is_bounded_and_may_be_off() -> None:
    cache = SourceCache(CacheOptions(most=2))
    for index in (1, 2, 1, 3):
        cache.heard("orders", record(index), index)
    assert cache.of("orders") == (record(1), record(3))
    assert cache.dropped == 1
    off = SourceCache(CacheOptions(on=False))
    off.heard("orders", record(1), 0)
    assert len(off) == 0


@given(st.lists(st.tuples(st.sampled_from(["heard", "forget", "topic"]), st.sampled_from("ab"), st.integers(1, 3))))
def test_against_a_plain_dictionary(steps: list[tuple[str, str, int]]) -> None:
    cache, plain = SourceCache(), dict[tuple[str, int], None]()
    for now, (step, topic, index) in enumerate(steps):
        match step:
            case "heard":
                cache.heard(topic, record(index), now)
                plain[topic, index] = None
            case "forget":
                cache.forget(topic, record(index))
                plain.pop((topic, index), None)
            case _:
                cache.forget_topic(topic)
                plain = {key: None for key in plain if key[0] != topic}
        for name in "ab":
            assert {found.index for found in cache.of(name)} == {key[1] for key in plain if key[0] == name}
