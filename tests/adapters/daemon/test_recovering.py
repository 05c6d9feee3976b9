"""What of a journal is restored: all, or what is young enough."""

import attrs

from stablecast.core.effects import Client
from stablecast.core.messages import Role
from stablecast.daemon.recovering import Extent, everything, shortened

LIFE, SOURCE, OTHER = 7, 3, 4
CLIENT = Client(Role.SOURCE, SOURCE, 0, "t", 1, LIFE, 0, "a:1", "a:2", 1, 1, 0, ())
CLIENTS = {SOURCE: CLIENT, OTHER: attrs.evolve(CLIENT, reg_id=OTHER, topic="other")}
EXTENTS: list[Extent] = [(SOURCE, first, 10, 100) for first in (0, 10, 20, 30)] + [(OTHER, 0, 5, 50)]


class Times:
    """A journal that knows when runs came."""

    def __init__(self, *times: int | None) -> None:
        self.times = dict(zip((0, 10, 20, 30), times, strict=True))

    def came_at(self, _: int, number: int) -> int | None:
        return self.times[number]


def restored(times: Times, span: int) -> tuple[list[Extent], dict[int, int]]:
    return shortened(times, CLIENTS, (EXTENTS, {SOURCE: 0}), lambda topic: span if topic == "t" else 0)


def test_without_a_span_everything_is_restored() -> None:
    assert everything("t") == 0
    assert restored(Times(1, 2, 3, 4), 0) == (EXTENTS, {SOURCE: 0})


def test_the_span_counts_back_from_the_newest_message() -> None:
    """Not from now: a store that was down for a week still has its last hours."""
    assert restored(Times(100, 200, 300, 400), 150) == (EXTENTS[2:], {SOURCE: 20})
    assert restored(Times(100, 200, 300, 400), 200) == (EXTENTS[1:], {SOURCE: 10})
    assert restored(Times(100, 200, 300, 400), 1000) == (EXTENTS, {SOURCE: 0})
    assert restored(Times(100, 200, 300, 400), 1) == (EXTENTS[3:], {SOURCE: 30})


def test_runs_of_an_earlier_release_have_no_time_and_are_old() -> None:
    assert restored(Times(None, None, 300, 400), 1000) == (EXTENTS, {SOURCE: 0})
    assert restored(Times(None, None, 10**12, 10**12), 1000) == (EXTENTS[2:], {SOURCE: 20})
    assert restored(Times(None, None, None, None), 1) == (EXTENTS, {SOURCE: 0})
