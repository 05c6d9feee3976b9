"""The nine habits of spec/habits.md: each program runs, and has at most six lines."""

import asyncio
import re
import textwrap
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.client import Message, Redelivery
from stablecast.typed import Topic
from tests.support.network import Network, network
from tests.support.tree import ROOT

PAGE = ROOT / "spec" / "habits.md"
HABITS = re.compile(r"^## (.*?)\n.*?```python\n(.*?)```", re.DOTALL | re.MULTILINE)
MOST_LINES = 6
NINE = 9


@attrs.frozen
class Order:
    """An order."""

    item: str
    count: int


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Network]:
    async with network(tmp_path) as started:
        yield started


async def test_each_habit_works(net: Network) -> None:
    """One after the other, as a reader tries them."""
    stores = [await net.store()]
    context = await net.context(session_id=7)
    shown: list[Any] = []
    done = asyncio.Event()

    def process(message: Message) -> None:
        if message.attempt == 3:
            done.set()
        raise ValueError("mine")

    names: dict[str, Any] = {
        "context": context,
        "stores": stores,
        "print": lambda *words: shown.append(words),
        "process": process,
        "Redelivery": Redelivery,
        "Topic": Topic,
        "Order": Order,
        "datetime": datetime,
        "timedelta": timedelta,
        "UTC": UTC,
    }
    printed: dict[str, list[Any]] = {}
    for title, code in HABITS.findall(PAGE.read_text(encoding="utf-8")):
        if title.startswith("Resume"):
            await context.close()
            names["context"] = names["again"] = context = await net.context(session_id=7)
            names["source"] = source = await context.source("orders", stores=stores)
            await source.send(b"plums")
        if title.startswith("Retry"):
            await (await context.source("tasks", stores=stores)).send(b"task")
        assert len(code.strip().splitlines()) <= MOST_LINES, title
        running = asyncio.create_task(_run(code, names))
        if title.startswith("Retry"):
            await done.wait()
            letter = await anext(context.receiver("dead"))
            assert letter.payload == b"task"
            running.cancel()
        await asyncio.wait([running])
        assert running.cancelled() or running.exception() is None, title
        printed[title] = shown.copy()
        shown.clear()
    assert len(printed) == NINE
    assert printed["Subscribe"] == [(0, b"apples"), (1, b"pears")]
    assert printed["Resume where the last run stopped"] in ([(b"pears",)], [(b"plums",)])
    assert printed["From the beginning"][:2] == printed["From a time"][:2] == [(b"apples",), (b"pears",)]
    assert printed["Work sharing"] == [(b"for one of the workers",)]
    assert printed["Retry, then dead letters"] == [(b"task", 1), (b"task", 2), (b"task", 3)]
    assert printed["Typed payload"] == [("apples",)]


async def _run(code: str, names: dict[str, Any]) -> None:
    """Run a program; the names that it sets are there for the next one."""
    body = textwrap.indent(code, "    ")
    exec(f"async def habit():\n{body}\n    globals().update(locals())", names)
    await names["habit"]()
