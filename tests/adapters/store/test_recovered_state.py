"""The restored part of a journal: all messages, or the young ones."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.history import FORGOTTEN
from stablecast.core.protocol.messages import Role
from stablecast.store.journal import Journal
from stablecast.store.recovered_state import Extent, everything, lost_extents, recovered, shortened, strangers

LIFE, SOURCE, OTHER = 7, 3, 4
CLIENT = Client(Role.SOURCE, SOURCE, 0, "t", 1, LIFE, 0, "a:1", "a:2", 1, 1, 0, ())
CLIENTS = {SOURCE: CLIENT, OTHER: attrs.evolve(CLIENT, reg_id=OTHER, topic="other")}
EXTENTS: list[Extent] = [(SOURCE, first, 10, 100) for first in (0, 10, 20, 30)] + [(OTHER, 0, 5, 50)]


class Times:
    """A journal that knows when runs came, each of ten messages."""

    def __init__(self, *times: int | None) -> None:
        self.times = times

    def came_at(self, _: int, number: int) -> int | None:
        return self.times[number // 10]


def restored(times: Times, span: int) -> tuple[list[Extent], dict[int, int]]:
    return shortened(times.came_at, CLIENTS, (EXTENTS, {SOURCE: 0}), lambda topic: span if topic == "t" else 0)


def test_without_a_span_everything_is_restored() -> None:
    assert everything("t") == 0
    assert restored(Times(1, 2, 3, 4), 0) == (EXTENTS, {SOURCE: 0})


def test_t24_the_span_counts_back_from_the_newest_message() -> None:
    """T24. A store that was down for a week still has its last hours, because the span does not end now."""
    assert restored(Times(100, 200, 300, 400), 150) == (EXTENTS[2:], {SOURCE: 20})
    assert restored(Times(100, 200, 300, 400), 200) == (EXTENTS[1:], {SOURCE: 10})
    assert restored(Times(100, 200, 300, 400), 1000) == (EXTENTS, {SOURCE: 0})
    assert restored(Times(100, 200, 300, 400), 1) == (EXTENTS[3:], {SOURCE: 30})


def test_runs_of_an_earlier_release_have_no_time_and_are_old() -> None:
    assert restored(Times(None, None, 300, 400), 1000) == (EXTENTS, {SOURCE: 0})
    assert restored(Times(None, None, 10**12, 10**12), 1000) == (EXTENTS[2:], {SOURCE: 20})
    assert restored(Times(None, None, None, None), 1) == (EXTENTS, {SOURCE: 0})


def test_runs_that_were_joined_are_told_apart() -> None:
    """The run that is restored in part begins with the first message that is young enough."""
    joined: list[Extent] = [(SOURCE, 0, 30, 300), (SOURCE, 30, 10, 100)]
    assert shortened(Times(100, 200, 300, 400).came_at, CLIENTS, (joined, {}), lambda _: 150) == (joined, {SOURCE: 20})
    assert shortened(Times(100, 200, 300, 400).came_at, CLIENTS, (joined, {}), lambda _: 50) == (
        joined[1:],
        {SOURCE: 30},
    )


class Runs:
    def __init__(self, *runs: tuple[int, int, int]) -> None:
        self.runs = runs

    def sizes(self, stream: int) -> Iterable[tuple[int, int, int]]:
        return self.runs if stream == SOURCE else ()

    def trail(self, _: int) -> int | None:
        return 0


def test_small_neighbours_are_one_extent() -> None:
    runs = [(0, 1, 40_012), (1, 2, 40_024), (3, 1, 112), (9, 1, 112), (10, 1, 112)]
    assert recovered(Runs(*runs), CLIENTS) == (
        [(SOURCE, 0, 3, 80_000), (SOURCE, 3, 1, 100), (SOURCE, 9, 2, 200)],
        {SOURCE: 0, OTHER: 0},
    )


class Unread:
    """A journal that could not read some messages."""

    lost = ((OTHER, 4, 1, 112), (SOURCE, 7, 2, 224), (SOURCE, 5, 2, 224), (99, 0, 1, 112), (SOURCE, 9, 1, 112))


def test_unread_neighbours_are_one_extent_of_their_source() -> None:
    assert lost_extents(cast("Journal", Unread()), {SOURCE, OTHER}) == [(SOURCE, 5, 5, 500), (OTHER, 4, 1, 100)]


class OneRun:
    """A journal with one run, numbers 0 to 29 of life 7, in a record of its own."""

    def extents(self, _: int) -> list[tuple[int, int, int]]:
        return [(0, 30, LIFE)]

    def find(self, _: int, number: int) -> SimpleNamespace | None:
        return SimpleNamespace(record=f"record of {number}")


@pytest.mark.parametrize(
    ("lives", "parts"),
    [
        ((), []),
        (((LIFE, 0),), []),
        (((LIFE, 0), (8, 10), (9, 20)), [(10, 20), (20, 30)]),
        (((6, 0), (LIFE, 10)), [(0, 10)]),
        (((FORGOTTEN, 0), (LIFE, 10)), []),
        (((LIFE, 5),), []),
        (((LIFE, 0), (8, 30)), []),
    ],
)
def test_messages_whose_numbers_another_life_has_are_strangers(
    lives: tuple[tuple[int, int], ...], parts: list[tuple[int, int]]
) -> None:
    """What the source's history forgot, or begins above, shows nothing."""
    found: list[Any] = strangers(cast("Journal", OneRun()), {SOURCE: attrs.evolve(CLIENT, lives=lives)})
    assert found == [(SOURCE, first, stop, f"record of {first}") for first, stop in parts]
