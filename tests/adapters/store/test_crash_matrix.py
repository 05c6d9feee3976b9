"""`kill -9` at each step of a store's disk, for each way to use one: what was reported stable is there afterwards."""

import asyncio
import shutil
from pathlib import Path

import attrs
import pytest

from stablecast.client import Context, Source
from stablecast.store.journal.disk import STEPS
from tests.adapters.store.crash_child import (
    IN_MEMORY,
    KINDS,
    PACED,
    PACED_FLIGHT,
    READER,
    SENDER,
    Child,
    Left,
    child,
    left,
    text,
)

TOPIC = "orders"
BATCH = 8
NEVER = 1_000_000
NTH = {"append": 6, "written": 6, "synced": 6}
"""Late enough for a loop to flush where it may."""

CELLS = [(kind, step) for kind in KINDS for step in STEPS]


@attrs.define
class Seen:
    """The reports to clients: the stable number, and the reader's acknowledged one."""

    stable: int = -1
    sent: int = 0
    consumed: int = 0


async def send(source: Source, seen: Seen, batches: int) -> None:
    """Batches, each waited for, so that each is a sync of its own."""
    await source.registered(None)
    for _ in range(batches):
        for _ in range(BATCH):
            await source.send(text(source.next_number))
        seen.sent = source.next_number
        await source.wait_stable_through(source.next_number - 1)
        seen.stable = source.stable_through


async def live(store: Child, seen: Seen, batches: int, kind: str) -> None:
    """A source sends and a receiver consumes until the work is done or the store is dead."""
    async with Context(session_id=SENDER) as context, Context(session_id=READER) as other:
        flight, pace = (PACED_FLIGHT, PACED) if kind == "paced" else ({}, {})
        source = await context.source(TOPIC, stores=[store.address], wait=False, options=flight)

        async def consume() -> None:
            async for message in other.receiver(TOPIC, source=source.config.transport, options=pace):
                message.consumed()
                seen.consumed += 1

        tasks = {asyncio.create_task(send(source, seen, batches)), asyncio.create_task(consume())}
        await asyncio.wait({*tasks, store.died}, return_when=asyncio.FIRST_COMPLETED)
        seen.stable = max(seen.stable, source.stable_through)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A directory for each way to use a disk, in which a store has served and was killed."""
    made = {}
    for kind in KINDS:
        directory = made[kind] = tmp_path_factory.mktemp(kind)
        asyncio.run(_grow(directory, kind))
    return made


async def _grow(directory: Path, kind: str) -> None:
    seen = Seen()
    async with child(directory, kind, "never", NEVER) as store:
        await live(store, seen, 6, kind)
    assert seen.stable == seen.sent - 1 > 0


@pytest.mark.rows("P-103", "P-104", "P-707")
@pytest.mark.parametrize(("kind", "step"), CELLS, ids=[f"{kind}-{step}" for kind, step in CELLS])
async def test_nothing_that_was_reported_is_lost(
    kind: str, step: str, templates: dict[str, Path], tmp_path: Path
) -> None:
    """No stable message lost, no RegID changed, no acknowledgement taken back."""
    directory = tmp_path / "store"
    shutil.copytree(templates[kind], directory)
    before, seen = left(directory), Seen()
    async with child(directory, kind, step, 1 if step.startswith("restart") else NTH.get(step, 3)) as store:
        if store.address:
            await live(store, seen, 40, kind)
        await store.died
    after = left(directory)
    assert after.reg_ids.items() >= before.reg_ids.items()
    assert after.acknowledged >= before.acknowledged
    _check_messages(before, after, seen)


@pytest.mark.rows("P-101", "P-102")
@pytest.mark.parametrize("kind", IN_MEMORY)
@pytest.mark.parametrize("step", ["restart-scanned", "restart-cut", "append", "written", "synced"])
async def test_registrations_outlive_messages_in_memory_only(kind: str, step: str, tmp_path: Path) -> None:
    """No RegID is changed and no acknowledgement taken back; no segment is begun or reclaimed here."""
    async with child(tmp_path, kind, "never", NEVER) as store:
        await live(store, Seen(), 6, kind)
    before = left(tmp_path)
    assert before.reg_ids
    async with child(tmp_path, kind, step, 1) as store:
        if store.address:
            await live(store, Seen(), 40, kind)
        await store.died
    after = left(tmp_path)
    assert after.reg_ids.items() >= before.reg_ids.items()
    assert after.acknowledged >= before.acknowledged
    assert not after.numbers


def _check_messages(before: Left, after: Left, seen: Seen) -> None:
    # Consumed messages may go before the source knows that they are stable: it learns of both apart.
    ended = max(seen.stable, before.acknowledged + seen.consumed, before.trail - 1, *before.numbers)
    assert before.trail <= after.trail <= ended + 1
    assert not any("damaged" in report for report in after.reports)
    for number, what in after.numbers.items():
        assert what == text(number)
    promised = range(after.trail, max(seen.stable, before.trail - 1, *before.numbers) + 1)
    assert set(promised) <= after.numbers.keys()


@pytest.mark.parametrize("kind", ["disk", "reduced-fd"])
async def test_a_restart_goes_on_where_the_crash_was(kind: str, templates: dict[str, Path], tmp_path: Path) -> None:
    """Stable messages are recovered from the store, by one who comes for the first time."""
    directory = tmp_path / "store"
    shutil.copytree(templates[kind], directory)
    seen = Seen()
    async with child(directory, kind, "synced", 4) as store:
        await live(store, seen, 40, kind)
        await store.died
    held = left(directory)
    async with child(directory, kind, "never", NEVER) as store, Context(session_id=SENDER) as context:
        source = await context.source(TOPIC, stores=[store.address])
        assert source.next_number > seen.stable
        async with Context(session_id=3) as other:
            receiver = other.receiver(TOPIC, source=source.config.transport)
            for number in range(held.trail, seen.stable + 1):
                message = await anext(receiver)
                assert (message.sequence_number, bytes(message.payload)) == (number, text(number))
                message.consumed()
