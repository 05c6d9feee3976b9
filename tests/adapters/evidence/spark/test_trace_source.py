"""`spark.read.format("stablecast")`, in batches and as a stream."""

import pickle
import shutil
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from pyspark.sql.types import LongType, StringType, StructType

from stablecast.evidence.spark.piece_judge import PIECE_BYTES
from stablecast.evidence.spark.trace_source import (
    COLUMNS,
    FORMAT,
    RowBounds,
    TraceReader,
    TraceSource,
    TraceStreamReader,
    narrow,
)
from stablecast.evidence.trace import container
from stablecast.evidence.trace.errors import TraceError
from tests.adapters.evidence.trace.traced import first_trace, put_together, records, take_apart, texts


def schema(*names: str) -> StructType:
    kind = StructType()
    for name in names:
        kind = kind.add(name, LongType() if COLUMNS.get(name) == pa.int64() else StringType())
    return kind


def reader(*paths: Path, size: int = PIECE_BYTES, on_error: str = "fail") -> TraceReader:
    options = {"paths": ",".join(map(str, paths)), "pieceBytes": str(size), "onError": on_error}
    return TraceSource(options).reader(schema("record", "kind"))


def read(reader: TraceReader | TraceStreamReader, partitions: list[InputPartition]) -> list[dict[str, object]]:
    return [row for one in partitions for batch in reader.read(one) for row in batch.to_pylist()]


def test_a_query_with_a_filter_and_a_group(spark: SparkSession, whole_world: Path) -> None:
    table = spark.read.format("stablecast").load(str(whole_world))
    assert table.columns == list(COLUMNS)
    found = table.where("role = 'store' and kind = 'Persisted' and record >= 20").groupBy("endpoint").count().collect()
    expected: dict[str, int] = {}
    for path in whole_world.glob("store-*"):
        frames = take_apart(path)
        some = [line for line in records(frames) if line["in"]["_"] == "Persisted" and line["n"] >= 20]
        expected[frames[0][0]["endpoint"]] = expected.get(frames[0][0]["endpoint"], 0) + len(some)
    assert {row.endpoint: row["count"] for row in found} == expected


def test_a_stream_reads_what_comes(spark: SparkSession, whole_world: Path, tmp_path: Path) -> None:
    live, seen = tmp_path / "live", tmp_path / "seen"
    live.mkdir()
    first, second, *_ = sorted(whole_world.glob("store-*"))
    shutil.copy(first, live)

    def rows() -> int:
        stream = spark.readStream.format("stablecast").load(str(live)).select("record", "endpoint")
        sink = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = sink.option("path", str(seen)).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return spark.read.parquet(str(seen)).count()

    count = sum(len(lines) - 2 for lines in take_apart(first))
    assert rows() == count
    shutil.copy(second, live)
    assert rows() == count + sum(len(lines) - 2 for lines in take_apart(second))


def test_batches_of_a_stream_are_limited_and_end_at_what_is_there_now(whole_world: Path, tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    first, second, third, *_ = sorted(whole_world.glob("store-*"))
    for path in (first, second):
        shutil.copy(path, live)
    stream = TraceSource({"path": str(live), "maxBytesPerBatch": "1"}).streamReader(schema("record"))
    stream.prepareForTriggerAvailableNow()
    shutil.copy(third, live)
    limit, ends, batches = stream.getDefaultReadLimit(), stream.initialOffset(), 0
    assert isinstance(limit, ReadMaxBytes)
    while (later := stream.latestOffset(ends, limit)) != ends:
        grown = [path for path, end in later.items() if end > ends.get(path, 0)]
        if not grown:
            break
        assert len(grown) == 1, "a limit below one frame is one frame"
        assert len(stream.partitions(ends, later)) == 1
        ends, batches = later, batches + 1
    assert batches == sum(len(container.offsets(path)) - 1 for path in (first, second))
    assert not ends.get(str(live / third.name)), "it came after the query had begun"
    everything = stream.latestOffset({}, ReadAllAvailable())
    assert {path: end for path, end in everything.items() if end} == {path: end for path, end in ends.items() if end}


def test_a_stream_reads_while_a_trace_is_written(spark: SparkSession, whole_world: Path, tmp_path: Path) -> None:
    """The query reads an empty file, its frames as they are finished, and a new file."""
    live = tmp_path / "live"
    live.mkdir()
    first, second, *_ = sorted(whole_world.glob("store-*"))
    frames = [text for text in texts(first) if text.count(b"\n") > 2]
    seen: list[int] = []
    stream = spark.readStream.format("stablecast").load(str(live)).select("record", "endpoint")
    query = stream.writeStream.foreachBatch(lambda rows, _: seen.append(rows.count())).start()
    try:
        query.processAllAvailable()
        assert sum(seen) == 0
        with (live / first.name).open("wb", buffering=0) as file:
            query.processAllAvailable()
            end = written = 0
            for text in frames[:3]:
                end = container.append(file.fileno(), end, text)
                written += text.count(b"\n") - 2
                query.processAllAvailable()
                assert sum(seen) == written
        shutil.copy(second, live)
        query.processAllAvailable()
        assert sum(seen) == written + sum(len(lines) - 2 for lines in take_apart(second))
    finally:
        query.stop()


def test_partitions_are_runs_of_frames_and_can_be_sent(whole_world: Path) -> None:
    source = first_trace(whole_world, "source")
    one, many = reader(source), reader(source, size=1)
    assert len(one.partitions()) == 1
    assert len(many.partitions()) == len(take_apart(source))
    sent = pickle.loads(pickle.dumps((many, many.partitions())))
    assert read(*sent) == read(one, list(one.partitions()))


def test_filters_narrow_and_stay_for_spark(whole_world: Path) -> None:
    every = reader(whole_world)
    path = str(first_trace(whole_world, "source"))
    filters: list[Filter] = [EqualTo(("path",), path), EqualTo(("record",), 30)]
    assert list(every.pushFilters(filters)) == filters
    assert len(every.partitions()) == 1
    assert 30 in [row["record"] for row in read(every, list(every.partitions()))]
    assert len(read(every, list(every.partitions()))) < len(list(records(take_apart(Path(path)))))


def test_the_format_has_a_name() -> None:
    assert TraceSource.name() == FORMAT == "stablecast"


def test_filters_narrow_the_bounds() -> None:
    bounds = RowBounds()
    for one in (
        GreaterThan(("record",), 5),
        GreaterThanOrEqual(("record",), 3),
        LessThan(("frame",), 9),
        LessThanOrEqual(("frame",), 7),
        In(("role",), ("store", "source")),
        In(("record",), (1, 2)),
        EqualTo(("kind",), "Data"),
        EqualTo(("a", "b"), 1),
        IsNull(("role",)),
    ):
        narrow(bounds, one)
    assert bounds == RowBounds({"record": 5}, {"frame": 7}, {"role": ["store", "source"]})


def test_a_file_that_cannot_be_read_fails_or_is_read_as_far_as_it_goes(whole_world: Path, tmp_path: Path) -> None:
    source = first_trace(whole_world, "source")
    path = tmp_path / "cut.sct"
    path.write_bytes(source.read_bytes()[:-1])
    strict, mild = reader(path), reader(path, on_error="skip")
    assert len(read(mild, list(mild.partitions()))) > 0
    with pytest.raises(TraceError, match="truncated"):
        read(strict, list(mild.partitions()))


def test_an_unreadable_file_is_reported_before_there_are_tasks(whole_world: Path, tmp_path: Path) -> None:
    """An error in a task comes with a page of Java."""
    source = first_trace(whole_world, "source")
    frames = take_apart(source)
    frames[0][0]["version"] = 3
    older = put_together(tmp_path / "changed", frames)
    for name, data, sentence in (
        ("cut.sct", source.read_bytes()[:-1], "is truncated at byte"),
        ("foreign.sct", b"nobody would take this for a trace", "is not a trace file"),
        ("older.sct", older.read_bytes(), "is of version 3 and this program reads version 7"),
        ("empty.sct", b"", "is empty, it holds no trace"),
        ("none.sct", None, "cannot be read: No such file"),
    ):
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(TraceError, match=sentence):
            reader(path).partitions()
        others = reader(path, source)
        assert list(others.pushFilters([EqualTo(("path",), str(source))])), "who asks for others is not held up"
        assert others.partitions()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "name the traces"),
        ({"path": "x", "onError": "ignore"}, "the option onError is fail or skip"),
        ({"path": "x", "pieceBytes": "many"}, "pieceBytes is a number"),
        ({"path": "x", "pieceBytes": "0"}, "pieceBytes is a number"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(TraceError, match=sentence):
        TraceSource(options)


def test_a_column_that_there_is_not() -> None:
    with pytest.raises(TraceError, match="no column 'color'"):
        TraceSource.names(schema("record", "color"))


def test_the_offset_of_a_stream_is_how_far_frames_are_finished(whole_world: Path, tmp_path: Path) -> None:
    source = first_trace(whole_world, "source")
    whole, live = source.read_bytes(), tmp_path / "live.sct"
    live.write_bytes(whole + bytes(20))
    stream = TraceSource({"path": str(tmp_path)}).streamReader(schema("record"))
    start = stream.initialOffset()
    end = stream.latestOffset(start)
    assert end == {str(live): len(whole)}
    assert len(read(stream, list(stream.partitions(start, end)))) == len(list(records(take_apart(source))))
    assert stream.partitions(end, stream.latestOffset(end)) == []
    (tmp_path / "begun.sct").touch()
    assert stream.partitions(end, stream.latestOffset(end)) == []
    live.write_bytes(whole + b"what is that?")
    with pytest.raises(TraceError, match="no frame begins there"):
        stream.latestOffset(end)
    mild = TraceSource({"path": str(live), "onError": "skip"}).streamReader(schema("record"))
    assert mild.latestOffset(end) == end
    (partition,) = mild.partitions({}, end)
    assert partition.value.stop == len(whole)


def test_a_query_of_nothing_is_an_empty_table(spark: SparkSession, whole_world: Path) -> None:
    traces = spark.read.format("stablecast").load(str(whole_world))
    assert traces.where("path = 'nowhere'").collect() == []
    assert traces.where("record < 0").groupBy("role").count().collect() == []
