"""The pipeline of the handbook: its program runs as it stands there, ends at every place, and starts again."""

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from stablecast.client import Context
from tests.support.program import Program
from tests.support.tree import ROOT

PAGE = ROOT / "handbook" / "howto" / "pipeline-on-spark.md"
BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def one_shuffle(messages: SparkSession) -> Iterator[None]:
    """Shuffle into one partition, because there are few rows."""
    before = messages.conf.get("spark.sql.shuffle.partitions")
    messages.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    messages.conf.set("spark.sql.shuffle.partitions", str(before))


class KilledError(Exception):
    """The program ends here."""


async def send(address: str, minutes: list[int]) -> None:
    """Send an order of a cent for each minute, and wait until all are stable."""
    async with Context(session_id=7) as context:
        source = await context.source("orders", stores=[address])
        for minute in minutes:
            at = (BEGIN + timedelta(minutes=minute)).isoformat()
            await source.send(json.dumps({"customer": f"c{minute % 2}", "cents": 1, "at": at}).encode())
        await source.wait_stable_through(source.next_number - 1)


async def turnover(address: str) -> list[tuple[str, int]]:
    """Return the begin and the sum of each window in the topic."""
    async with Context() as context, context.reader("turnover", stores=[address]) as reader:
        found = [json.loads(message.payload) async for message in reader]
    return [(one["begin"], one["cents"]) for one in found]


def test_windows_come_once_wherever_the_program_ends(
    messages: SparkSession,
    stores: dict[str, Program],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    one_shuffle: None,
) -> None:
    [address] = stores
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    program = compile(found[1], str(PAGE), "exec")
    monkeypatch.setattr("sys.argv", ["turnover.py", address, str(tmp_path)])

    def run() -> None:
        exec(program, {"__name__": "__main__"})

    def dies(method: str) -> None:
        """Run the program, and end it after it has written rows."""
        write: Any = getattr(DataFrameWriter, method)

        def wrapped(writer: Any, *arguments: Any, **more: Any) -> None:
            full = not writer._df.isEmpty()
            write(writer, *arguments, **more)
            if full:
                raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(DataFrameWriter, method, wrapped)
            with pytest.raises(Exception, match="KilledError"):
                run()

    asyncio.run(send(address, [0, 0, 1, 2, 30]))
    # A program that ends before a step leaves the state after the step before, so two places are enough.
    for method in ("save", "parquet"):
        dies(method)
    # Minute 3 is too late now; minute 31 is not.
    asyncio.run(send(address, [3, 31, 60]))
    run()
    windows = asyncio.run(turnover(address))
    assert [cents for _, cents in windows] == [2, 1, 1, 1, 1]
    assert [begin for begin, _ in windows] == [
        (BEGIN + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%S.000Z") for minute in (0, 1, 2, 30, 31)
    ]
    table = messages.read.parquet(str(tmp_path / "turnover"))
    assert sorted(row.cents for row in table.collect()) == [1, 1, 1, 1, 2]
