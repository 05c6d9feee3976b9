"""Histograms of durations."""

from stablecast.core.machine.durations import BOUNDS_NS, Durations
from stablecast.core.machine.units import MILLISECOND


def test_a_duration_counts_in_the_first_bucket_that_reaches_it() -> None:
    durations = Durations()
    for took in (0, BOUNDS_NS[0], BOUNDS_NS[0] + 1, BOUNDS_NS[-1], BOUNDS_NS[-1] + 1):
        durations.add(took)
    view = durations.view()
    assert (view.counts[:2], view.counts[-2:]) == ((2, 1), (1, 1))
    assert (view.count, view.total_ns) == (5, 2 * BOUNDS_NS[0] + 2 * BOUNDS_NS[-1] + 2)


def test_a_clock_that_leaps_back_counts_as_no_time() -> None:
    durations = Durations()
    durations.add(-MILLISECOND)
    assert (durations.view().counts[0], durations.view().total_ns) == (1, 0)


def test_the_newest_example_of_a_bucket_is_kept() -> None:
    durations = Durations()
    for now in (1, 2):
        durations.add_example(3 * MILLISECOND, (("source", str(now)),), now)
    ((bucket, labels, took, at),) = durations.view().exemplars
    assert BOUNDS_NS[bucket - 1] < took <= BOUNDS_NS[bucket]
    assert (labels, at) == ((("source", "2"),), 2)
