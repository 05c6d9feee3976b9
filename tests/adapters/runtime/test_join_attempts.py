"""Streams at a host that nobody can join are tried seldom."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from stablecast.runtime import join_attempts as module
from stablecast.runtime.join_attempts import AT_ONCE, JoinAttempts, join_attempts


async def failing(attempts: JoinAttempts, made: list[str], host: str) -> None:
    place = await attempts.take(host)
    made.append(host)
    place.hold()


async def test_failed_attempts_keep_their_places_and_other_hosts_have_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[Callable[[], None]] = []
    attempts, made = JoinAttempts(), list[str]()
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda _, call: held.append(call), raising=False)
    waiting = asyncio.gather(*(failing(attempts, made, "10.0.0.7") for _ in range(AT_ONCE + 5)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(made) == AT_ONCE
    await failing(attempts, made, "10.0.0.8")
    assert made[-1] == "10.0.0.8"
    for leave in held[:5]:
        leave()
    await waiting
    assert len(made) == AT_ONCE + 6
    for leave in held:  # Five of them once more, which changes nothing.
        leave()
    assert not attempts._places


async def test_attempts_that_succeed_wait_for_nothing() -> None:
    attempts = join_attempts()
    for _ in range(3 * AT_ONCE):
        (await attempts.take("10.0.0.7")).leave()
    assert not attempts._places
    assert join_attempts() is attempts


async def test_an_attempt_that_is_given_up_leaves_no_place_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1)
    attempts = JoinAttempts()
    place = await attempts.take("10.0.0.7")
    task = asyncio.create_task(attempts.take("10.0.0.7"))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    place.leave()
    assert not attempts._places
