"""The sink without Spark: tasks of several attempts write to a store, and the driver compares at the end."""

from collections.abc import Iterator, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql.types import StructType

from stablecast.core.errors import StablecastError
from stablecast.spark.message_options import WriteTerms
from stablecast.spark.message_sink import Committed, SinkPlace, check_columns, settle, sources_seen, written
from stablecast.spark.row_identity import SinkError
from tests.adapters.spark.test_message_source import read_back
from tests.support.program import Program


class KilledError(Exception):
    """The task ends here."""


class Sink:
    """A sink as Spark drives it: attempts of batches, in divisions, each of which may be killed."""

    def __init__(self, stores: dict[str, Program], **options: str) -> None:
        self.stores = stores
        given = {"path": "copies", "stores": ",".join(stores), "sink": "one", "patience": "60"}
        self.terms = WriteTerms.of(given | options)

    def write(
        self, batch: int, epoch: str, *division: Sequence[object], fail_at: tuple[int, int] | None = None
    ) -> list[Committed]:
        """Write a batch in a division; kill the task `fail_at[0]` after so many rows."""
        seen, done = sources_seen(self.terms), []
        for partition, rows in enumerate(division):
            ends = fail_at[1] if fail_at and fail_at[0] == partition else None
            done.append(written(self.terms, SinkPlace("one", batch, epoch, partition), seen, table(rows, ends)))
        settle(self.terms, done)
        return done

    def there(self) -> list[str]:
        return sorted(payload.decode() for payload in read_back(self.stores, "copies"))


def table(rows: Sequence[object], ends: int | None) -> Iterator[pa.RecordBatch]:
    kept = list(rows)[:ends]
    pairs = [row if isinstance(row, tuple) else (row, None) for row in kept]
    columns = {"payload": pa.array([payload for payload, _ in pairs], pa.string())}
    if any(key is not None for _, key in pairs):
        columns["key"] = pa.array([key for _, key in pairs])
    yield pa.RecordBatch.from_pydict(columns)
    if ends is not None:
        raise KilledError


ROWS = [str(number) for number in range(90)]


def test_a_batch_that_is_repeated_in_another_division_has_each_row_once(stores: dict[str, Program]) -> None:
    sink = Sink(stores)
    with pytest.raises(KilledError):
        sink.write(0, "a", ROWS[:30], ROWS[30:60], ROWS[60:], fail_at=(1, 10))
    with pytest.raises(KilledError):
        sink.write(0, "b", ROWS[:50], ROWS[50:], fail_at=(1, 15))
    done = sink.write(0, "c", ROWS[::-1])
    assert sink.there() == sorted(ROWS)
    assert (done[0].sent, done[0].withheld.total()) == (25, 65)
    # The next batch of this attempt looks at its own lane only; a whole batch that is repeated adds nothing.
    assert [one.looked for one in sink.write(1, "c", ROWS)] == [False]
    assert [one.sent for one in sink.write(1, "d", ROWS[:1], ROWS[1:])] == [0, 0]
    assert sink.there() == sorted(ROWS * 2)


def test_equal_rows_of_several_partitions_count(stores: dict[str, Program]) -> None:
    sink = Sink(stores)
    with pytest.raises(KilledError):
        sink.write(0, "a", ["x", "x"], ["y", "x"], fail_at=(1, 1))
    sink.write(0, "b", ["x", "y"], ["x"], ["x"])
    assert sink.there() == ["x", "x", "x", "y"]
    sink.write(0, "c", ["x"], ["x", "x", "y"])
    assert sink.there() == ["x", "x", "x", "y"]


def test_a_task_that_is_repeated_in_its_attempt_goes_on(stores: dict[str, Program]) -> None:
    sink = Sink(stores)
    seen, place = sources_seen(sink.terms), SinkPlace("one", 0, "a", 0)
    with pytest.raises(KilledError):
        written(sink.terms, place, seen, table(["x", "x", "y"], 2))
    done = written(sink.terms, place, seen, table(["y", "x", "x"], None))
    assert (done.sent, done.repeated, done.withheld.total()) == (1, 2, 0)
    settle(sink.terms, [done])
    assert sink.there() == ["x", "x", "y"]


def test_rows_that_differ_from_those_before_are_refused(stores: dict[str, Program]) -> None:
    sink = Sink(stores)
    with pytest.raises(KilledError):
        sink.write(0, "a", ["x", "y"], fail_at=(0, 2))
    with pytest.raises(SinkError, match="2 messages of batch 0 of the sink 'one' that its rows do not account for"):
        sink.write(0, "b", ["u", "v"])
    # A name that another query had: its batches begin again, with other rows.
    sink = Sink(stores, sink="two", path="others")
    for batch in range(3):
        sink.write(batch, "a", [str(batch)])
    with pytest.raises(SinkError, match="batch 2 of it is there already"):
        sink.write(0, "b", ["new"])
    assert [one.sent for one in sink.write(1, "c", ["1"])] == [0]


def test_a_key_tells_rows_apart_whose_content_changes(stores: dict[str, Program]) -> None:
    sink = Sink(stores, key="key")
    with pytest.raises(KilledError):
        sink.write(0, "a", [("x at 1", 1), ("y at 1", 2)], fail_at=(0, 1))
    sink.write(0, "b", [("y at 2", 2)], [("x at 2", 1)])
    assert sink.there() == ["x at 1", "y at 2"]
    with pytest.raises(SinkError, match="1 rows of batch 0 of the sink 'one' have the key of another row"):
        sink.write(0, "c", [("x", 1), ("y", 2)], [("z", 2)])


def test_a_message_that_no_store_has_that_answers_ends_the_write(stores: dict[str, Program]) -> None:
    sink = Sink(stores, patience="0.5")
    sink.write(0, "a", ["x"])
    [program] = stores.values()
    program.process.kill()
    program.process.wait()
    with pytest.raises(StablecastError, match="stores of 'copies' answered and 1 are needed"):
        sources_seen(sink.terms)


def test_a_key_is_a_column_of_the_table() -> None:
    schema = StructType().add("payload", "string").add("id", "long")
    check_columns(schema, ["id"])
    with pytest.raises(StablecastError, match="the option key names a column 'name'"):
        check_columns(schema, ["name"])
    with pytest.raises(StablecastError, match="has a column 'id' cannot be written"):
        check_columns(schema)
