"""The Spark session of these tests, and stores as processes with a topic in them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.left_out import NO_SPARK

pytest.importorskip("pyspark", reason=NO_SPARK)

from pyspark.sql import SparkSession

from stablecast.client import Context
from stablecast.spark import register
from tests.adapters.evidence.spark.conftest import collected, spark, thawed
from tests.support.program import Program, store

__all__ = ["collected", "spark", "thawed"]


@pytest.fixture
def messages(spark: SparkSession) -> SparkSession:
    """Return a local session that knows the format."""
    register(spark)
    return spark


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[dict[str, Program]]:
    """Run a store; yield it by its address."""
    with ExitStack() as stack:
        running = [stack.enter_context(store(tmp_path / name)) for name in "a"]
        yield {address: program for program, address in running}


@pytest.fixture
def fill(stores: dict[str, Program]) -> Callable[..., None]:
    """Return a function that sends numbers [first, stop) as texts to a topic, and waits until they are stable."""

    async def send(topic: str, session_id: int, first: int, stop: int) -> None:
        async with Context(session_id=session_id) as context:
            source = await context.source(topic, stores=list(stores))
            await source.send_many([b"%d" % number for number in range(first, stop)])
            await source.wait_stable_through(source.next_number - 1)

    def filled(topic: str, session_id: int, first: int, stop: int) -> None:
        asyncio.run(send(topic, session_id, first, stop))

    return filled
