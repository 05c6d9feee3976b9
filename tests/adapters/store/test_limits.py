"""Limits keep newcomers out, and never those who are in."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from stablecast.client import Context
from stablecast.config.plan import StoreLimits
from stablecast.core.protocol.events import RegistrationComplete, RegistrationError
from stablecast.store import limits as admitting
from tests.adapters.store.test_store import serving, until
from tests.support.network import Events


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (StoreLimits(sources=1), "there is 1 source already, those that are away included: evict those"),
        (StoreLimits(clients=1), "there is 1 client already, those that are away included: evict those"),
        (StoreLimits(disk_bytes=300), "bytes, and 300 are allowed"),
    ],
)
async def test_a_newcomer_is_refused_and_who_is_in_may_return(limits: StoreLimits, why: str, tmp_path: Path) -> None:
    said: list[str] = []
    log = lambda *words: said.append(words[3])  # noqa: E731
    async with serving(tmp_path, limits=limits, log=log) as store:
        async with Context(session_id=1) as context:
            await context.source("first", stores=[store.address])
        async with Context(session_id=2) as context:
            events = Events()
            await context.source("second", stores=[store.address], on_event=events, wait=False)
            await until(lambda: events.of(RegistrationError))
            assert not events.of(RegistrationComplete)
        async with Context(session_id=1) as context:
            await context.source("first", stores=[store.address])
        assert store.oddities["over-limit"] >= 1
        assert any(text.startswith("127.0.0.1:") and why in text for text in said)


@pytest.mark.parametrize(("limits", "what"), [(StoreLimits(sources=4), "sources"), (StoreLimits(clients=4), "clients")])
async def test_one_host_leaves_places_to_the_others(limits: StoreLimits, what: str, tmp_path: Path) -> None:
    """State may last for ever, so a stranger who registers without end must not keep all others out."""
    said: list[str] = []
    log = lambda *words: said.append(words[3])  # noqa: E731
    async with serving(tmp_path, limits=limits, log=log) as store, AsyncExitStack() as stack:
        for number in range(3):
            crowd = await stack.enter_async_context(Context(session_id=1 + number))
            await crowd.source(f"crowd-{number}", stores=[store.address])
        crowd = await stack.enter_async_context(Context(session_id=9))
        events = Events()
        await crowd.source("crowd", stores=[store.address], on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
        assert any(f"its host has 3 of 4 {what} already" in text for text in said)
        other = await stack.enter_async_context(Context(interface="127.0.0.2", session_id=10))
        await other.source("other", stores=[store.address])


async def test_a_receiver_is_no_source(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=StoreLimits(sources=1)) as store, Context(session_id=1) as context:
        source = await context.source("first", stores=[store.address])
        await source.send(b"one")
        async with Context(session_id=2) as other:
            assert (await anext(other.receiver("first", source=source.config.transport))).payload == b"one"


async def test_a_store_that_is_drained_takes_nobody_new(tmp_path: Path) -> None:
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        await context.source("first", stores=[store.address])
        store.draining = True
        events = Events()
        await context.source("second", stores=[store.address], on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
        store.draining = False
        await until(lambda: events.of(RegistrationComplete))


async def test_a_source_for_whose_stream_no_descriptor_is_left_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that shares a session needs none."""
    said: list[str] = []
    log = lambda *words: said.append(words[3])  # noqa: E731
    monkeypatch.setattr(admitting, "descriptors_for_streams", lambda: 0)
    async with serving(tmp_path, log=log) as store, Context(session_id=1) as context:
        events = Events()
        await context.source("first", stores=[store.address], on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
        assert any("raise the hard limit of open files" in text for text in said)
        await context.source("second", stores=[store.address], options={"transport": "lbtru"})
