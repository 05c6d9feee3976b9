"""Processes: timers on drifting clocks, freezing, leaping, closing."""

from random import Random
from typing import Any

import pytest

from stablecast.core.effects import Effect
from stablecast.core.inputs import Start, Tick
from stablecast.sim.network import Network
from stablecast.sim.process import Driver, Process
from stablecast.sim.world import Clock, World
from stablecast.trace import Driven


class Alarm:
    """A machine that wants to be woken up at an instant of its clock, and again after another thousand."""

    def __init__(self, due: int) -> None:
        self.due = due
        self.log: list[tuple[str, int]] = []

    def receive(self, event: Any, now: int) -> None:
        self.log.append((type(event).__name__, now))

    def handle_timeout(self, now: int) -> None:
        if now >= self.due:
            self.log.append(("due", now))
            self.due += 1000

    def next_timeout(self) -> int:
        return self.due

    def take_effects(self) -> list[Effect]:
        return []


def driven(due: int, clock: Clock | None = None) -> tuple[Process, Alarm, "Driver[Any, Effect]"]:
    process = Process(Network(World(Random(0))), "p", "h", clock or Clock(0, 0))
    alarm = Alarm(due)
    return process, alarm, Driver(process, Driven(alarm), lambda effect: pytest.fail(str(effect)))


def test_a_timer_fires_when_the_clock_of_the_process_shows_it() -> None:
    process, alarm, driver = driven(2000, Clock(1000, 10_000))
    driver.feed(Start())
    process.world.run(985)
    assert alarm.log == [("Start", 1000)]
    process.world.run(1000)
    assert alarm.log == [("Start", 1000), ("due", 2000)]


@pytest.mark.parametrize(("timers_first", "order"), [(True, ["due", "Tick"]), (False, ["Tick", "due"])])
def test_a_frozen_process_finds_timers_and_mail(timers_first: bool, order: list[str]) -> None:
    process, alarm, driver = driven(10)
    driver.feed(Start())
    process.freeze()
    process.deliver(lambda: driver.feed(Tick()))
    process.world.run(100)
    assert [what for what, _ in alarm.log] == ["Start"]
    process.thaw(timers_first=timers_first)
    assert [what for what, _ in alarm.log] == ["Start", *order]


def test_a_leap_brings_timers_forward() -> None:
    process, alarm, driver = driven(500)
    driver.feed(Start())
    process.leap(450)
    process.world.run(50)
    assert alarm.log[-1] == ("due", 500)


def test_the_dead_hear_nothing_and_the_closed_do_nothing() -> None:
    process, alarm, driver = driven(500)
    driver.close()
    driver.close()
    driver.feed(Start())
    process.crash()
    process.deliver(lambda: driver.feed(Start()))
    process.thaw(timers_first=True)
    process.world.run(2000)
    assert alarm.log == []
