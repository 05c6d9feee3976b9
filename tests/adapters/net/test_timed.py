"""The loop of a machine without a trace."""

import asyncio
import time

from stablecast.core.units import MILLISECOND
from stablecast.net.timed import Timed
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


async def test_what_is_due_is_done_and_what_comes_first_first() -> None:
    done: list[str] = []
    clock = Clock()
    timed = Timed(clock, done.append)
    timed.feed("in 60000")
    timed.feed("same")
    started = time.monotonic()
    timed.feed("in 2")
    await until(lambda: "woken" in done)
    assert time.monotonic() - started < 30
    assert done == ["in 60000", "same", "in 2", "woken"]
    timed.close()


async def test_effects_that_feed_the_machine_are_performed_in_turn() -> None:
    done: list[str] = []

    def perform(effect: str) -> None:
        if effect == "first":
            timed.feed("third")
        done.append(effect)

    timed = Timed(Clock(), perform)
    timed.feed("first")
    assert done == ["first", "third"]
    timed.close()


async def test_nothing_happens_once_closed() -> None:
    done: list[str] = []
    clock = Clock()
    timed = Timed(clock, done.append)
    timed.feed("in 1")
    timed.close()
    timed.feed("late")
    timed.wake()
    await asyncio.sleep(0.01)
    assert (done, clock.woken) == (["in 1"], 0)
