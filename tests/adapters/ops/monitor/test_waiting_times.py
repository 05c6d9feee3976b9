"""The waiting times of receivers and holes, as the sweeps see them."""

import attrs

from stablecast.core.machine.durations import BOUNDS_NS, Durations
from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor.board import SourceRow
from stablecast.ops.monitor.waiting_times import StoreTimes
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE


def observed(times: Durations) -> list[int]:
    """Return the upper bounds of the buckets that have observations, once for each observation."""
    bounds = [*BOUNDS_NS, -1]
    return [bounds[at] for at, count in enumerate(times.view().counts) for _ in range(count)]


def swept(*looks: tuple[int, int, bool, int]) -> StoreTimes:
    """Sweep once a second over (newest, acknowledged, active, holes)."""
    times, row = StoreTimes(), SourceRow(1001)
    for second, (newest, acknowledged, active, holes) in enumerate(looks, 1):
        receiver = attrs.evolve(RECEIVER, acknowledged=acknowledged, active=active)
        view = attrs.evolve(SOURCE, window=(0, 0, newest), holes=holes, receivers=(receiver,))
        row.update(view, second * SECOND, times)
    return times


def test_a_receiver_that_keeps_up_waits_for_nothing() -> None:
    assert observed(swept((9, 9, True, 0), (19, 19, True, 0)).delivery) == []


def test_a_late_receiver_is_timed_from_the_sweep_before() -> None:
    """The message came in the second before sweep 2. Sweep 5 finds that it is acknowledged."""
    late = swept((9, 9, True, 0), (19, 9, True, 0), (30, 12, True, 0), (40, 18, True, 0), (40, 19, True, 0))
    assert observed(late.delivery) == [5 * SECOND]
    [(_, labels, took_ns, at_ns)] = late.delivery.view().exemplars
    assert (dict(labels)["receiver"], took_ns, at_ns) == ("2001", 4 * SECOND, 5 * SECOND)


def test_a_receiver_that_is_ahead_of_the_store_waits_for_nothing() -> None:
    """It got from the source what has not come here yet. The monitor ended with that."""
    assert observed(swept((9, 10, True, 0), (9, 30, True, 0), (30, 30, True, 0)).delivery) == []


def test_a_receiver_that_leaves_ends_its_wait_without_a_time() -> None:
    assert observed(swept((9, 5, True, 0), (9, 5, False, 0), (9, 9, True, 0)).delivery) == []


def test_holes_are_timed_until_all_are_filled() -> None:
    recovery = swept((9, 9, True, 0), (19, 19, True, 3), (19, 19, True, 1), (19, 19, True, 0)).recovery
    assert observed(recovery) == [2 * SECOND]
    assert recovery.view().count == 1


def test_receivers_that_are_forgotten_leave_nothing() -> None:
    times, row = StoreTimes(), SourceRow(1001)
    row.update(attrs.evolve(SOURCE, receivers=(attrs.evolve(RECEIVER, acknowledged=3),)), SECOND, times)
    assert row.waits.numbers
    row.update(attrs.evolve(SOURCE, receivers=()), 2 * SECOND, times)
    assert not row.waits.numbers
    assert not row.waits.since
