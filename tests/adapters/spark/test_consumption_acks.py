"""A query with a session: stores that receivers pace keep what it has not processed, over restarts of the query."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from stablecast.client.stored_consumer import ConsumerRefused
from stablecast.spark.message_source import MessageSource, TopicStreamReader
from tests.support.processes import until
from tests.support.program import store
from tests.support.stored_orders import held_orders, send_orders


@contextmanager
def query(address: str, **options: str) -> Iterator[TopicStreamReader]:
    """Yield the planner of a query, as Spark's driver runs it."""
    given = {"path": "orders", "stores": address, "session": "9", **options}
    reader = MessageSource(given).streamReader(StructType().add("payload", "binary"))
    try:
        yield reader
    finally:
        reader.stop()


def test_a_paced_store_keeps_what_the_query_has_not_processed(tmp_path: Path) -> None:
    with store(tmp_path / "a", "-o", "repository-allow-receiver-paced-persistence=1") as (_, address):
        send_orders(address, 0, 0)
        with query(address) as reader:
            begin = reader.initialOffset()
            send_orders(address, 0, 100)
            end = reader.latestOffset(begin, ReadAllAvailable())
            assert held_orders(address) == [(0, 100)]
            middle = {name: dict.fromkeys(lives, 40) for name, lives in end.items()}
            reader.commit(middle)
            assert until(lambda: held_orders(address) == [(40, 100)])
        # The stores remember the session: another query without a checkpoint goes on there.
        with query(address, start="0") as reader:
            assert [number for lives in reader.initialOffset().values() for number in lives.values()] == [40]
            # The source's next life is paced by the session, too.
            send_orders(address, 100, 150)
            end = reader.latestOffset(middle, ReadAllAvailable())
            assert held_orders(address) == [(40, 150)]
            reader.commit(end)
            assert until(lambda: held_orders(address) == [])


def test_another_pace_is_one_sentence(tmp_path: Path) -> None:
    with store(tmp_path / "a") as (_, address):
        send_orders(address, 0, 10, paced=False)
        with query(address) as reader, pytest.raises(ConsumerRefused, match="set the option pace to source"):
            reader.initialOffset()
        with query(address, pace="source") as reader:
            assert list(reader.initialOffset()) == ["7"]
