"""The loop that drives a machine without a trace."""

import pytest

from stablecast.core.machine.units import MILLISECOND
from stablecast.runtime.driver import UntracedDriver
from tests.support.network import until


class Clock:
    """A machine that echoes its inputs, and is due when it is told to be."""

    def __init__(self) -> None:
        self.due: int | None = None
        self.woken = 0
        self.out: list[str] = []

    def receive(self, event: str, now: int) -> None:
        if event.startswith("in "):
            self.due = now + int(event[3:]) * MILLISECOND
        self.out.append(event)

    def handle_timeout(self, now: int) -> None:
        if self.due is not None and now >= self.due:
            self.woken += 1
            self.due = None
            self.out.append("woken")

    def next_timeout(self) -> int | None:
        return self.due

    def take_effects(self) -> list[str]:
        out, self.out = self.out, []
        return out


def unexpected(effect: object, error: Exception) -> None:
    """Fail the test: no effect may fail."""
    raise AssertionError(f"{effect} failed") from error


async def test_a_timeout_runs_when_it_is_due_and_inputs_run_in_order() -> None:
    done: list[str] = []
    clock = Clock()
    driver = UntracedDriver(clock, done.append, unexpected)
    driver.feed("in 60000")
    driver.feed("same")
    driver.feed("in 2")
    await until(lambda: "woken" in done)
    assert done == ["in 60000", "same", "in 2", "woken"]
    driver.close()


async def test_effects_that_feed_the_machine_are_performed_in_turn() -> None:
    done: list[str] = []

    def perform(effect: str) -> None:
        if effect == "first":
            driver.feed("third")
        done.append(effect)

    driver = UntracedDriver(Clock(), perform, unexpected)
    driver.feed("first")
    assert done == ["first", "third"]
    driver.close()


async def test_the_inputs_of_one_read_are_fed_before_their_effects() -> None:
    done: list[str] = []
    clock = Clock()
    driver = UntracedDriver(clock, lambda effect: done.append(f"{effect} of {len(clock.out)}"), unexpected)
    fed = iter(("a", "b"))
    driver.feed_all(fed)
    assert done == ["a of 0", "b of 0"]
    driver.close()
    driver.feed_all(("late",))
    assert len(done) == 2


async def test_nothing_happens_once_closed() -> None:
    done: list[str] = []
    clock = Clock()
    driver = UntracedDriver(clock, done.append, unexpected)
    driver.feed("in 1")
    driver.close()
    assert driver._alarm._timer is None, "the timer is given back"
    clock.due = 0
    driver.feed("late")
    driver.wake()
    later: list[str] = []
    other = UntracedDriver(Clock(), later.append, unexpected)
    other.feed("in 2")
    await until(lambda: "woken" in later)
    assert (done, clock.woken) == (["in 1"], 0)
    other.close()


async def test_an_effect_that_fails_costs_no_other_effect() -> None:
    done, failures = list[str](), list[tuple[object, str]]()

    def perform(effect: str) -> None:
        if effect == "bad":
            driver.feed("after")
            raise ValueError("no")
        done.append(effect)

    driver = UntracedDriver(Clock(), perform, lambda effect, error: failures.append((effect, str(error))))
    driver.machine.out += ["first", "bad", "second"]  # type: ignore[attr-defined]
    driver.feed("in 1")
    assert done == ["first", "second", "in 1", "after"]
    assert failures == [("bad", "no")]
    await until(lambda: "woken" in done)
    driver.close()


async def test_a_machine_that_refuses_an_input_loses_no_effect_and_keeps_its_timer() -> None:
    class Refusing(Clock):
        def receive(self, event: str, now: int) -> None:
            self.out.append("kept")
            self.due = now + MILLISECOND
            raise ValueError(event)

    done: list[str] = []
    driver = UntracedDriver(Refusing(), done.append, unexpected)
    with pytest.raises(ValueError, match="no"):
        driver.feed("no")
    assert done == ["kept"]
    await until(lambda: done == ["kept", "woken"])
    driver.close()
