"""Virtual time and clocks."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from stablecast.sim.world import Clock, World


def test_things_happen_in_order_of_time_then_of_planning() -> None:
    world, seen = World(Random(0)), list[str]()
    world.at(20, lambda: seen.append("late"))
    world.after(10, lambda: seen.append("first"))
    world.at(10, lambda: (seen.append("second"), world.at(5, lambda: seen.append("at once"))) and None)
    world.run(15)
    assert (seen, world.now) == (["first", "second", "at once"], 15)
    world.run(20)
    assert seen[-1] == "late"


@given(st.integers(0, 10**12), st.integers(-20_000, 20_000), st.integers(0, 10**12))
def test_a_clock_says_when_it_will_show_an_instant(offset: int, ppm: int, shown: int) -> None:
    clock = Clock(offset, ppm)
    instant = clock.when(shown)
    assert clock.read(instant) >= shown
    assert clock.read(instant - 2) < shown
