"""Virtual time and clocks."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import InvariantError
from stablecast.lab.sim import virtual_time as module
from stablecast.lab.sim.virtual_time import VirtualClock, VirtualWorld


def test_things_happen_in_order_of_time_then_of_planning() -> None:
    world, seen = VirtualWorld(Random(0)), list[str]()
    world.at(20, lambda: seen.append("late"))
    world.after(10, lambda: seen.append("first"))

    def second() -> None:
        seen.append("second")
        world.at(5, lambda: seen.append("at once"))

    world.at(10, second)
    world.run(15)
    assert (seen, world.now) == (["first", "second", "at once"], 15)
    world.run(20)
    assert seen[-1] == "late"


@given(st.integers(0, 10**12), st.integers(-20_000, 20_000), st.integers(0, 10**12))
def test_a_clock_says_when_it_will_show_an_instant(offset: int, ppm: int, shown: int) -> None:
    clock = VirtualClock(offset, ppm)
    instant = clock.when(shown)
    assert clock.read(instant) >= shown
    assert clock.read(instant - 2) < shown


def test_a_world_that_does_not_become_idle_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EVENTS", 100)
    world = VirtualWorld(Random(0))

    def again() -> None:
        world.after(0, again)

    again()
    with pytest.raises(InvariantError, match="become idle"):
        world.run(1)
