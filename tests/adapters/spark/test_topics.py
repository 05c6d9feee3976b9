"""Which topics, sources and numbers a query reads, as its driver plans it; and that nothing is a result."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThanOrEqual, In, InputPartition, LessThan
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from stablecast.client.range_reader import TopicUnknown
from stablecast.core.errors import StablecastError
from stablecast.spark.message_ranges import TopicPiece
from stablecast.spark.message_source import FORMAT, MessageSource, TopicStreamReader, TopicTableReader
from tests.support.program import Program

Fill = Callable[..., None]

SCHEMA = StructType().add("topic", "string").add("number", "long")


def table(stores: dict[str, Program], topics: str, **options: str) -> TopicTableReader:
    return MessageSource({"path": topics, "stores": ",".join(stores), **options}).reader(SCHEMA)


def stream(stores: dict[str, Program], topics: str, **options: str) -> TopicStreamReader:
    return MessageSource({"path": topics, "stores": ",".join(stores), **options}).streamReader(SCHEMA)


def plan(reader: TopicTableReader, *filters: Filter) -> list[tuple[str, int, int]]:
    """Return the sources and numbers that a table reads."""
    assert list(reader.pushFilters(list(filters))) == list(filters)
    found: list[TopicPiece] = [partition.value for partition in reader.partitions()]
    return sorted((piece.source, piece.first, piece.stop) for piece in found)


@pytest.fixture
def topics(fill: Fill) -> None:
    """Fill two topics, one with two sources."""
    fill("orders", 7, 0, 100)
    fill("orders", 8, 0, 50)
    fill("bills", 7, 0, 10)


@pytest.mark.usefixtures("topics")
def test_several_topics_are_one_table(stores: dict[str, Program]) -> None:
    both = [("bills/7", 0, 10), ("orders/7", 0, 100), ("orders/8", 0, 50)]
    assert plan(table(stores, "orders,bills")) == both
    assert plan(table(stores, '["bills", "orders"]')) == both
    assert plan(table(stores, "", topicPattern="^(or|bi)")) == both
    assert plan(table(stores, "bills", topicPattern="^or", sources="7")) == both[:2]
    reader = table(stores, "orders,bills", end="3")
    assert [sum(b.num_rows for b in reader.read(one)) for one in reader.partitions()] == [3, 3, 3]
    topics = {row for one in reader.partitions() for b in reader.read(one) for row in b.column("topic").to_pylist()}
    assert topics == {"orders", "bills"}


@pytest.mark.usefixtures("topics")
def test_sources_begin_and_end_where_each_is_told(stores: dict[str, Program]) -> None:
    starts = json.dumps({"7": 90, "8": "last 5"})
    assert plan(table(stores, "orders", start=starts)) == [("7", 90, 100), ("8", 45, 50)]
    assert plan(table(stores, "orders", start='{"*": "latest", "8": 10}', end='{"8": "20"}')) == [("8", 10, 20)]
    assert plan(table(stores, "orders,bills", start='{"*": "latest", "bills/7": 4}')) == [("bills/7", 4, 10)]
    assert stream(stores, "orders", start=starts).initialOffset().keys() == {"7", "8"}
    with pytest.raises(
        StablecastError, match="no store knows source '9' of 'orders', which has a bound: there are 7, 8"
    ):
        table(stores, "orders", start='{"9": 1}').partitions()


@pytest.mark.usefixtures("topics")
def test_filters_leave_out_topics_sources_and_numbers(stores: dict[str, Program]) -> None:
    some = plan(table(stores, "orders,bills"), In(("source",), ("7", "9")), EqualTo(("topic",), "orders"))
    assert some == [("orders/7", 0, 100)]
    numbers = (GreaterThanOrEqual(("number",), 45), LessThan(("number",), 60))
    assert plan(table(stores, "orders"), *numbers) == [("7", 45, 60), ("8", 45, 50)]
    assert plan(table(stores, "orders"), EqualTo(("topic",), "bills")) == []


@pytest.mark.usefixtures("topics")
def test_a_batch_is_within_both_limits_and_the_newest_offset_is_told(stores: dict[str, Program]) -> None:
    reader = stream(stores, "orders,bills", maxRowsPerBatch="40", maxBytesPerBatch="20")
    assert reader.reportLatestOffset() is None
    begin = reader.initialOffset()
    end = reader.latestOffset(begin, reader.getDefaultReadLimit())
    read = sum(max(lives.values()) for lives in end.values())
    assert 3 <= read <= 20
    assert reader.reportLatestOffset() == reader.latestOffset(begin, ReadAllAvailable())
    assert sum(max(lives.values()) for lives in reader.latestOffset(begin, ReadMaxRows(4)).values()) <= 4


def test_a_topic_that_no_store_knows_is_told_unless_it_may_be_new(stores: dict[str, Program], fill: Fill) -> None:
    with pytest.raises(TopicUnknown, match="no store holds a source of 'ordres'"):
        table(stores, "ordres").partitions()
    reader = table(stores, "ordres", new="true")
    assert list(reader.partitions()) == []
    assert list(reader.read(InputPartition(None))) == []
    later = stream(stores, "ordres,bills")
    begin = later.initialOffset()
    fill("bills", 7, 0, 10)
    assert [*later.latestOffset(begin, ReadAllAvailable())] == ["bills/7"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"path": "a,b", "session": "1"}, "session and archive are for one topic"),
        ({"path": "a", "topicPattern": "b", "archive": "/x"}, "session and archive are for one topic"),
        ({"path": "a", "archive": "/x", "start": '{"7": 1}'}, "with an archive"),
        ({"path": "a,,b"}, "an empty name"),
        ({"path": "a", "start": "{1}"}, "a JSON object"),
        ({"path": "a", "start": '{"7": "soon"}'}, "'soon' is no place"),
        ({"path": "a", "new": "yes"}, "the option new is true or false"),
        ({"topicPattern": "("}, "is not an expression"),
    ],
)
def test_options_that_do_not_fit_get_a_sentence(options: dict[str, str], text: str) -> None:
    with pytest.raises(StablecastError, match=text):
        MessageSource({"stores": "127.0.0.1:1", **options}).reader(SCHEMA)


def test_nothing_is_a_result(messages: SparkSession, stores: dict[str, Program], fill: Fill, tmp_path: Path) -> None:
    fill("orders", 7, 0, 10)
    source = messages.read.format(FORMAT).option("stores", ",".join(stores))
    assert source.option("start", "latest").load("orders").count() == 0
    assert source.option("start", "0").load("orders").where("source = '9'").collect() == []
    assert source.load("orders").where("number >= 3 and number < 5").select("number").count() == 2
    assert source.option("new", "true").load("others").count() == 0
    assert source.option("start", "latest").load("orders").groupBy("topic").count().collect() == []
    writer = source.load("orders").where("number > 100").select("payload").write.format(FORMAT)
    writer.option("stores", ",".join(stores)).option("sink", "one").mode("append").save("copies")
    with pytest.raises(Exception, match="no store holds a source of 'ordres'"):
        source.option("new", "false").load("ordres").count()
