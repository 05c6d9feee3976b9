"""Messages in memory, against a plain dict of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.store import message_cache as module
from stablecast.store.message_cache import COMPACT_RUNS, MessageCache

STEP = st.one_of(
    st.tuples(st.just("keep"), st.integers(0, 30), st.integers(1, 8)),
    st.tuples(st.sampled_from(["drop", "cut"]), st.integers(0, 32), st.just(0)),
    st.tuples(st.just("forget"), st.just(0), st.just(0)),
)


def shown(cache: MessageCache, source: int) -> dict[int, tuple[int, int]]:
    """Each number's block (by its tag) and its place in it."""
    found = {}
    for number in range(-2, 45):
        hit = cache.find(source, number)
        if hit is not None:
            first, count, tag, block = hit
            assert first <= number < first + count
            assert block == b"%d" % tag
            found[number] = (tag, number - first)
    return found


@given(st.lists(STEP, max_size=30), st.sampled_from([0, COMPACT_RUNS]))
def test_against_a_dict(steps: list[tuple[str, int, int]], compact: int) -> None:
    cache, naive = MessageCache(), dict[int, tuple[int, int]]()
    before, module.COMPACT_RUNS = module.COMPACT_RUNS, compact
    try:
        for tag, (what, at, count) in enumerate(steps):
            match what:
                case "keep":
                    cache.keep(1, at, count, tag, b"%d" % tag)
                    naive |= {number: (tag, number - at) for number in range(at, at + count)}
                case "drop":
                    cache.drop_before(1, at)
                    naive = {number: place for number, place in naive.items() if number >= at}
                case "cut":
                    cache.cut(1, at)
                    naive = {number: place for number, place in naive.items() if number < at}
                case _:
                    cache.forget(1)
                    naive = {}
            assert shown(cache, 1) == naive
    finally:
        module.COMPACT_RUNS = before


def test_sources_have_nothing_to_do_with_each_other() -> None:
    cache = MessageCache()
    cache.keep(1, 0, 2, 5, b"5")
    for nobody in (2, 3):
        cache.drop_before(nobody, 9)
        cache.cut(nobody, 0)
        cache.forget(nobody)
    assert shown(cache, 1) == {0: (5, 0), 1: (5, 1)}
    assert cache.find(2, 0) is None


def test_places_of_dropped_runs_are_given_back() -> None:
    cache = MessageCache()
    for number in range(10 * COMPACT_RUNS):
        cache.keep(1, number, 1, 7, b"7")
        cache.drop_before(1, number - 2)
    assert len(cache._sources[1].starts) <= 2 * COMPACT_RUNS
    assert len(shown(cache, 1)) == 0
    assert cache.find(1, 10 * COMPACT_RUNS - 1) is not None
