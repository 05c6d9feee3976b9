"""An alarm has one timer, which is set again only if it would fire too late."""

import asyncio

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.runtime.alarm import Alarm
from tests.support.machine import replace


async def test_it_rings_at_the_earliest_deadline_that_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    loop, rung = asyncio.get_running_loop(), asyncio.Event()
    call_later = loop.call_later

    def noted(wait: float, *rest: object) -> asyncio.TimerHandle:
        waits.append(wait)
        return call_later(wait, *rest)  # type: ignore[arg-type]

    replace(monkeypatch, "clock", monotonic_ns=lambda: 5 * SECOND)
    monkeypatch.setattr(loop, "call_later", noted)
    alarm = Alarm(rung.set)
    for due in (65 * SECOND, 95 * SECOND, 35 * SECOND + 1, 5 * SECOND, 4 * SECOND):
        alarm.set(due)
    await rung.wait()
    assert waits == [60, 30.001, 0, 0]


async def test_without_a_deadline_it_does_not_ring() -> None:
    rung: list[int] = []
    alarm = Alarm(lambda: rung.append(1))
    alarm.set(0)
    alarm.set(None)
    alarm.set(None)
    other = asyncio.Event()
    Alarm(other.set).set(0)
    await other.wait()
    assert rung == []
