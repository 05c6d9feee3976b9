"""A query with a session: stores that receivers pace keep what it has not processed, over restarts of the query."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from stablecast.client import Context
from stablecast.client.stored_consumer import ConsumerRefused
from stablecast.spark.message_source import MessageSource, TopicStreamReader
from tests.support.processes import until
from tests.support.program import store

PACED = {"ume_receiver_paced_persistence": 1, "ume_flight_size_bytes": 100_000, "ume_repository_size_limit": 10_000_000}


@contextmanager
def query(address: str, **options: str) -> Iterator[TopicStreamReader]:
    """Yield the planner of a query, as Spark's driver runs it."""
    given = {"path": "orders", "stores": address, "session": "9", **options}
    reader = MessageSource(given).streamReader(StructType().add("payload", "binary"))
    try:
        yield reader
    finally:
        reader.stop()


async def send(address: str, first: int, stop: int, paced: bool) -> None:
    async with Context(session_id=7) as context:
        options = PACED if paced else None
        source = await context.source("orders", stores=[address], options=options)
        if first < stop:
            await source.send_many([b"%d" % number for number in range(first, stop)])
            await source.wait_stable_through(stop - 1)


def held(address: str) -> list[tuple[int, int]]:
    """Return the numbers that the store holds."""

    async def ask() -> list[tuple[int, int]]:
        async with Context() as context:
            found, _ = await context.stored("orders", stores=[address])
            return [one for source in found.sources for one in source.ranges]

    return asyncio.run(ask())


def test_a_paced_store_keeps_what_the_query_has_not_processed(tmp_path: Path) -> None:
    with store(tmp_path / "a", "-o", "repository-allow-receiver-paced-persistence=1") as (_, address):
        asyncio.run(send(address, 0, 0, paced=True))
        with query(address) as reader:
            begin = reader.initialOffset()
            asyncio.run(send(address, 0, 100, paced=True))
            end = reader.latestOffset(begin, ReadAllAvailable())
            assert held(address) == [(0, 100)]
            middle = {name: dict.fromkeys(lives, 40) for name, lives in end.items()}
            reader.commit(middle)
            assert until(lambda: held(address) == [(40, 100)], 20)
        # The stores remember the session: another query without a checkpoint goes on there.
        with query(address, start="0") as reader:
            assert [number for lives in reader.initialOffset().values() for number in lives.values()] == [40]
            # The source's next life is paced by the session, too.
            asyncio.run(send(address, 100, 150, paced=True))
            end = reader.latestOffset(middle, ReadAllAvailable())
            assert held(address) == [(40, 150)]
            reader.commit(end)
            assert until(lambda: held(address) == [], 20)


def test_another_pace_is_one_sentence(tmp_path: Path) -> None:
    with store(tmp_path / "a") as (_, address):
        asyncio.run(send(address, 0, 10, paced=False))
        with query(address) as reader, pytest.raises(ConsumerRefused, match="set the option pace to source"):
            reader.initialOffset()
        with query(address, pace="source") as reader:
            assert list(reader.initialOffset()) == ["7"]
