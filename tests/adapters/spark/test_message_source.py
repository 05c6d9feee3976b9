"""`stablecast-messages`: topics as tables and streams, and streams into topics, each message exactly once."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from stablecast.client import Context
from stablecast.core.errors import StablecastError
from stablecast.spark.message_ranges import SourceSpan, limited, pieces
from stablecast.spark.message_source import FORMAT, MessageSource
from tests.support.processes import until
from tests.support.program import Program
from tools.torture.spark_kills import kill, workers

Fill = Callable[..., None]


def read_back(stores: dict[str, Program], topic: str) -> list[bytes]:
    async def read() -> list[bytes]:
        async with Context() as context, context.reader(topic, stores=list(stores)) as reader:
            return [message.payload async for message in reader]

    return asyncio.run(read())


def test_a_topic_is_a_table(messages: SparkSession, stores: dict[str, Program], fill: Fill) -> None:
    fill("orders", 7, 0, 5000)
    fill("orders", 8, 0, 100)
    source = messages.read.format(FORMAT).option("stores", ",".join(stores)).option("partitionMessages", 3000)
    table = source.load("orders").cache()
    assert {row["source"]: row["count"] for row in table.groupBy("source").count().collect()} == {"7": 5000, "8": 100}
    rows = table.where("source = '7'").collect()
    assert sorted((row.number, bytes(row.payload)) for row in rows) == [(one, b"%d" % one) for one in range(5000)]
    assert all(row.topic == "orders" and row.received is not None and row.recovered for row in rows)
    assert len({row.life for row in rows}) == 1
    some = source.option("start", "10").option("end", "last 1").option("sources", "7")
    with pytest.raises(Exception, match="cannot end at"):
        some.load("orders").count()
    few = source.option("start", "4990").option("end", "4995").option("sources", "7").schema("number bigint")
    assert sorted(row.number for row in few.load("orders").collect()) == list(range(4990, 4995))


def stream(messages: SparkSession, stores: dict[str, Program], target: str, where: Path, lose: bool = False) -> None:
    """Copy what is stable of `orders` to a topic, in batches of 300 rows; kill a worker meanwhile if `lose` is true."""
    found: DataFrame = (
        messages.readStream.format(FORMAT)
        .option("stores", ",".join(stores))
        .option("maxRowsPerBatch", 300)
        .load("orders")
    )
    query = (
        found.select("payload")
        .writeStream.format(FORMAT)
        .option("stores", ",".join(stores))
        .option("topic", target)
        .option("checkpointLocation", str(where))
        .trigger(availableNow=True)
        .start()
    )
    if lose:
        assert until(lambda: kill(workers(os.getpid()), Random(1)) is not None)
    query.awaitTermination()
    assert query.exception() is None


def test_a_stream_goes_on_exactly_where_it_ended(
    messages: SparkSession, stores: dict[str, Program], fill: Fill, tmp_path: Path
) -> None:
    """A batch whose commit was lost is written again and adds nothing, nor does the task whose worker was lost."""
    fill("orders", 7, 0, 500)
    where = tmp_path / "checkpoint"
    stream(messages, stores, "copies", where)
    assert read_back(stores, "copies") == [b"%d" % number for number in range(500)]
    for commit in sorted((where / "commits").iterdir()):
        if commit.name.lstrip(".").startswith("1"):
            commit.unlink()
    fill("orders", 7, 500, 700)
    stream(messages, stores, "copies", where, lose=True)
    found = sorted(int(payload) for payload in read_back(stores, "copies"))
    assert found == list(range(700))


def test_a_table_is_written_once(messages: SparkSession, stores: dict[str, Program]) -> None:
    table = messages.range(100).selectExpr("cast(id as string) as payload", "'{\"a\": 1}' as properties").repartition(2)
    table = table.localCheckpoint()
    for _ in range(2):
        table.write.format(FORMAT).option("stores", ",".join(stores)).option("sink", "one").mode("append").save(
            "numbers"
        )
    assert sorted(int(payload) for payload in read_back(stores, "numbers")) == list(range(100))


SCHEMA = StructType().add("payload", "binary")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "name the topic"),
        ({"path": "orders"}, "name the stores"),
        ({"path": "orders", "stores": "127.0.0.1:1", "store": "x"}, "no option 'store': did you mean stores"),
        ({"path": "orders", "stores": "127.0.0.1:1", "missing": "no"}, "missing is fail or skip"),
        ({"path": "orders", "stores": "127.0.0.1:1", "start": "soon"}, "'soon' is no place"),
        ({"path": "orders", "stores": "127.0.0.1:1", "patience": "0"}, "patience is a number of seconds"),
        ({"path": "orders", "stores": "127.0.0.1:1", "maxRowsPerBatch": "0"}, "from 1 on"),
        ({"path": "orders", "stores": "127.0.0.1:1", "sources": "a"}, "sources is a number"),
        ({"path": "orders", "stores": "127.0.0.1:1", "session": "0"}, "session is a number from 1 on"),
        ({"path": "orders", "stores": "127.0.0.1:1", "session": "1", "pace": "slow"}, "pace is receivers or source"),
        ({"path": "orders", "stores": "127.0.0.1:1", "pace": "source"}, "pace needs a session"),
        ({"path": "orders", "stores": "127.0.0.1:1", "archive": "s3a://b/o"}, "not on a local file system"),
    ],
)
def test_wrong_options_get_a_sentence_at_the_driver(options: dict[str, str], text: str) -> None:
    for make in ("reader", "streamReader"):
        with pytest.raises(StablecastError, match=text):
            getattr(MessageSource(options), make)(SCHEMA)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (StructType().add("number", "long"), "has a column 'number'"),
        (StructType().add("properties", "string"), "no column 'payload'"),
        (StructType().add("payload", "long"), "must be binary or string"),
    ],
)
def test_tables_that_are_no_messages_are_refused_at_the_driver(schema: StructType, text: str) -> None:
    source = MessageSource({"path": "orders", "stores": "127.0.0.1:1", "sink": "one"})
    for make in (source.writer, source.streamWriter):
        with pytest.raises(StablecastError, match=text):
            make(schema, False)
    with pytest.raises(StablecastError, match="name the write"):
        MessageSource({"path": "orders", "stores": "127.0.0.1:1"}).writer(SCHEMA, False)
    with pytest.raises(StablecastError, match="cannot be overwritten"):
        source.writer(SCHEMA, True)


def test_columns_that_do_not_exist_are_refused_at_the_driver() -> None:
    with pytest.raises(StablecastError, match="no column 'price'"):
        MessageSource({"path": "orders", "stores": "127.0.0.1:1"}).reader(StructType().add("price", "long"))


def test_types_that_cannot_be_read_are_refused_at_the_driver() -> None:
    with pytest.raises(StablecastError, match="the column 'number' of messages is bigint, not string: cast it"):
        MessageSource({"path": "orders", "stores": "127.0.0.1:1"}).reader(StructType().add("number", "string"))


def test_offsets_become_pieces_and_limits_are_shared() -> None:
    start, end = {"7": {"aa": 5}}, {"7": {"bb": 12}, "8": {"cc": 3}}
    found = [(piece.source, piece.first, piece.stop) for piece in pieces(start, end, 4)]
    assert found == [("7", 5, 9), ("7", 9, 12), ("8", 0, 3)]
    assert pieces(end, end, 4) == []
    states = [SourceSpan("7", "aa", 0, 1000, 100), SourceSpan("8", "cc", 0, 10, 100)]

    def shares(**limits: Any) -> list[tuple[int, int]]:
        return [
            (first, stop)
            for _, first, stop in limited({"7": {"aa": 500}}, states, limits.get("rows"), limits.get("size"))
        ]

    assert shares() == [(500, 1000), (0, 10)]
    assert shares(rows=51) == [(500, 550), (0, 1)]
    assert shares(rows=1) == [(500, 501), (0, 0)]
    assert shares(size=5100) == [(500, 550), (0, 1)]
    assert shares(size=1) == [(500, 501), (0, 1)]
