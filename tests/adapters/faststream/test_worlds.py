"""The test broker in worlds: it finds bugs of handlers that a stub of a test broker does not."""

import asyncio
import math
from pathlib import Path

import pytest

from stablecast.testing import minimal_schedule, parallel_seeds
from tests.adapters.faststream import stub_broker
from tests.adapters.faststream.planted_handlers import HANDLERS, ORDERS, PlantedHandler
from tests.adapters.testing.planted_support import lines

pytestmark = pytest.mark.no_cover

SEEDS = 100
MENDED_SEEDS = 3

REASONS = {
    "booked_twice": ("crash", "booked: 0"),
    "acknowledged_first": ("crash", "lost: "),
    "dropped_on_error": ("full_disk", "lost: "),
    "left_to_a_task": ("crash", "lost: "),
    "total_in_memory": ("crash", "total: "),
}
"""The fault and the begin of the message by which each bug shows."""


@pytest.fixture(autouse=True)
def _as_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave schedules as they are drawn, and run all seeds in this process: both are tested elsewhere."""
    monkeypatch.setattr(minimal_schedule, "RUNS", 0)
    monkeypatch.setattr(parallel_seeds, "ALONE_S", math.inf)


def test_there_are_five_handlers() -> None:
    assert len({handler.name for handler in HANDLERS}) == len(HANDLERS) == len(REASONS) == 5


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.name)
async def test_the_stub_finds_nothing(handler: PlantedHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broker = handler.make(False)
    for number in range(ORDERS):
        await stub_broker.publish(broker, number, "orders")
    if handler.name == "left_to_a_task":
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
    handler.check(lines())


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.name)
def test_a_world_finds_the_bug(handler: PlantedHandler) -> None:
    found = handler.explore(SEEDS, mended=False).found
    assert found is not None
    assert found.failure is not None
    fault, reason = REASONS[handler.name]
    assert fault in {strike.fault for strike in found.struck}
    assert str(found.failure.error).startswith(reason)


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.name)
def test_nothing_is_found_in_the_mended_handler(handler: PlantedHandler) -> None:
    report = handler.explore(MENDED_SEEDS, mended=True)
    assert report.found is None
    assert report.worlds == MENDED_SEEDS
