"""Scheduling requests to the kernel, and the cost of yielding."""

import os
import platform
import sys
import threading

import attrs
import pytest

from stablecast.runtime.wakeup_latency import LONG_NS, PAUSE, Courtesy, courtesy, short_slices
from tests.support.machine import replace


@attrs.define
class Clock:
    """Stands for the clock; giving way takes `cost`."""

    now: int = 1
    cost: int = 0
    yields: int = 0

    def monotonic_ns(self) -> int:
        return self.now

    def give_way(self) -> None:
        self.yields += 1
        self.now += self.cost


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    replace(monkeypatch, "clock", monotonic_ns=clock.monotonic_ns)
    replace(monkeypatch, "threads", give_way=clock.give_way)
    return clock


def test_a_thread_that_waited_long_stops_yielding_for_a_while(clock: Clock) -> None:
    """A hundred times as long as the wait was: a hundredth of the time is what such waits take at most."""
    giving = Courtesy()
    for clock.cost in (0, LONG_NS, LONG_NS + 1):
        giving.give_way()
    assert clock.yields == 3
    clock.now += PAUSE * clock.cost - 1
    giving.give_way()
    assert clock.yields == 3
    clock.now += 1
    giving.give_way()
    assert clock.yields == 4


def test_short_slices_leave_policy_and_nice_value_as_they_are() -> None:
    """In a thread of its own, for it is the thread's: who may not ask goes on as before."""
    found: list[tuple[int, int]] = []

    def ask() -> None:
        for change in (lambda: None, short_slices):
            change()
            found.append((os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found[0] == found[1]


@pytest.mark.parametrize(("processor", "system", "gives_way"), [("vax", "linux", True), ("x86_64", "plan9", False)])
def test_other_systems_get_no_request(
    processor: str, system: str, gives_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: processor)
    monkeypatch.setattr(sys, "platform", system)
    assert not short_slices()
    assert (courtesy() is not None) == gives_way
