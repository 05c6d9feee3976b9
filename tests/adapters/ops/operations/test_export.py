"""Messages in files."""

import base64
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from stablecast.ops.operations import export as tested
from stablecast.ops.operations.directory_contents import Contents, read
from stablecast.ops.operations.export import (
    JsonLines,
    MessageRow,
    MessageSelection,
    Parquet,
    batches,
    export,
    instant,
    rows,
    sink,
)
from stablecast.ops.operations.target import OperationError
from stablecast.store.journal import Journal, JournalError
from stablecast.transports.codec.fragments import encode_pieces
from stablecast.transports.wire import properties
from tests.adapters.ops.operations.store_directory import SOURCE, block, fill, kept
from tests.support.left_out import NO_SPARK


def lines(octets: bytes) -> list[dict[str, Any]]:
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(octets)) as reader:
        return [json.loads(line) for line in reader.read().splitlines()]


def numbers(found: Iterator[MessageRow]) -> list[int]:
    return [row.number for row in found]


async def test_every_message_is_a_line(tmp_path: Path) -> None:
    before = time.time_ns()
    directory = await kept(tmp_path)
    file = io.BytesIO()
    assert export(directory, MessageSelection(), JsonLines(file)) == 13
    found = lines(file.getvalue())
    assert [line["number"] for line in found] == [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 100, 101, 102]
    assert all(base64.b64decode(line["payload"]) == b"message %d" % line["number"] for line in found)
    assert before <= found[0]["came_at"] <= time.time_ns()
    assert {key: found[-1][key] for key in ("source", "topic", "session_id", "incarnation")} == {
        "source": 1002,
        "topic": "quotes",
        "session_id": 7,
        "incarnation": 66,
    }


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (MessageSelection(source=1002), [100, 101, 102]),
        (MessageSelection(source=1001, first=4, last=8), [4, 5, 8]),
        (MessageSelection(first=11), [11, 100, 101, 102]),
        (MessageSelection(last=1), [0, 1]),
        (MessageSelection(first=6, last=7), []),
    ],
)
async def test_a_span_of_numbers(tmp_path: Path, wanted: MessageSelection, found: list[int]) -> None:
    assert numbers(rows(await kept(tmp_path), wanted)) == found


async def test_a_span_of_time(tmp_path: Path) -> None:
    def first(journal: Journal) -> None:
        journal.append_messages(1001, 0, 3, 55, block(0, 3), 2)

    def second(journal: Journal) -> None:
        journal.append_messages(1001, 3, 3, 55, block(3, 3), 2)

    directory = await fill(tmp_path, SOURCE, then=first)
    between = time.time_ns()
    while time.time_ns() == between:
        pass
    await fill(directory, SOURCE, then=second)
    assert numbers(rows(directory, MessageSelection(until=between))) == [0, 1, 2]
    assert numbers(rows(directory, MessageSelection(since=between))) == [3, 4, 5]
    assert numbers(rows(directory, MessageSelection(since=0, until=time.time_ns()))) == [0, 1, 2, 3, 4, 5]


def test_what_has_no_time_is_in_no_span_of_time() -> None:
    assert MessageSelection().came_in_time(None)
    assert not MessageSelection(since=0).came_in_time(None)
    assert MessageSelection(since=5, until=6).came_in_time(5)
    assert not MessageSelection(until=6).came_in_time(6)


async def test_a_source_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="no source 5"):
        list(rows(await kept(tmp_path), MessageSelection(source=5)))


async def test_a_part_of_a_block_is_exported_where_it_is_live(tmp_path: Path) -> None:
    def cut(journal: Journal) -> None:
        journal.append_messages(1001, 0, 6, 55, block(0, 6), 2)
        journal.cut(1001, 4, 3)
        journal.append_messages(1001, 4, 2, 56, block(104, 2), 4)
        journal.trim(1001, 2, 5)

    found = list(rows(await fill(tmp_path, SOURCE, then=cut), MessageSelection()))
    assert [(row.number, row.incarnation, row.payload) for row in found] == [
        (2, 55, b"message 2"),
        (3, 55, b"message 3"),
        (4, 56, b"message 104"),
        (5, 56, b"message 105"),
    ]


async def one_run(directory: Path) -> Path:
    return await fill(directory, SOURCE, then=lambda journal: journal.append_messages(1001, 0, 2, 5, block(0, 2), 2))


async def test_what_a_running_store_lets_go_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await one_run(tmp_path)

    def read_and_lose(directory: Path) -> Contents:
        found = read(directory)
        for path in directory.glob("*.seg"):
            path.unlink()
        return found

    monkeypatch.setattr(tested, "read", read_and_lose)
    assert list(rows(directory, MessageSelection())) == []


async def test_what_is_damaged_meanwhile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = await one_run(tmp_path)

    def read_and_break(directory: Path) -> Contents:
        found = read(directory)
        for path in directory.glob("*.seg"):
            path.write_bytes(path.read_bytes().replace(b"message 1", b"message 2"))
        return found

    monkeypatch.setattr(tested, "read", read_and_break)
    with pytest.raises(JournalError, match="checksum"):
        list(rows(directory, MessageSelection()))


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "BATCH_ROWS", 3)
    monkeypatch.setattr(tested, "BATCH_BYTES", 10)
    made = [
        MessageRow(1, "t", 0, 0, number, None, b"x" * size, 0) for number, size in enumerate((1, 1, 1, 1, 9, 50, 1))
    ]
    assert [numbers(iter(batch)) for batch in batches(made)] == [[0, 1, 2], [3, 4], [5], [6]]
    assert list(batches([])) == []


async def test_parquet_has_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason=NO_SPARK)
    monkeypatch.setattr(tested, "BATCH_ROWS", 5)
    directory = await kept(tmp_path / "store")
    path = tmp_path / "out.parquet"
    with path.open("wb") as file:
        assert export(directory, MessageSelection(), sink(path, file)) == 13
    table = parquet.read_table(path)
    assert table.column("number").to_pylist()[-4:] == [11, 100, 101, 102]
    assert table.column("payload").to_pylist()[0] == b"message 0"
    assert str(table.schema.field("came_at").type) == "timestamp[ns, tz=UTC]"
    assert parquet.ParquetFile(path).num_row_groups == 3


def test_parquet_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(tested, "import_module", missing)
    with pytest.raises(OperationError, match="pip install pyarrow"):
        Parquet(io.BytesIO())


def test_the_name_says_the_format() -> None:
    assert isinstance(sink(Path("a.jsonl.zst"), io.BytesIO()), JsonLines)
    with pytest.raises(OperationError, match=r"\.parquet or \.jsonl\.zst"):
        sink(Path("a.csv"), io.BytesIO())


def test_times_are_written_as_people_and_machines_do() -> None:
    assert instant("17") == 17
    assert instant("2026-01-02T03:04:05Z") == instant("2026-01-02T03:04:05") == 1_767_323_045_000_000_000
    assert instant("2026-01-02T04:04:05.000001+01:00") == 1_767_323_045_000_001_000
    with pytest.raises(OperationError, match="is no time"):
        instant("yesterday")


@pytest.mark.rows("P-129")
async def test_a_message_in_pieces_is_one_row_if_it_is_whole(tmp_path: Path) -> None:
    """Across runs; of one whose beginning is gone, or not wanted, there is none. Properties are beside it."""
    told = properties.block({"symbol": "ABC"})
    large = [encode_pieces(7, 0, bytes([1]) * 900, 500), encode_pieces(7, 2, bytes([2]) * 800 + told, 500, len(told))]
    broken = encode_pieces(7, 6, b"xy" + told[:-1], 500, len(told) - 1)

    def then(journal: Journal) -> None:
        journal.append_messages(1001, 0, 3, 55, b"".join([*large[0], large[1][0]]), 1)
        journal.append_messages(
            1001, 3, 2, 55, b"".join([*large[1][1:], *encode_pieces(7, 4, b"z" + told, 500, len(told))]), 2
        )
        journal.append_messages(1001, 5, 1, 55, block(5, 1), 3)
        journal.append_messages(1001, 6, 1, 55, broken[0], 4)

    directory = await fill(tmp_path / "pieces", SOURCE, then=then)
    found = list(rows(directory, MessageSelection()))
    assert [(row.first, row.number, len(row.payload)) for row in found] == [
        (0, 1, 900),
        (2, 3, 800),
        (4, 4, 1),
        (5, 5, 9),
        (6, 6, 2),
    ]
    assert [json.loads(row.properties) for row in found] == [{}, {"symbol": "ABC"}, {"symbol": "ABC"}, {}, {}]
    assert numbers(rows(directory, MessageSelection(first=1, last=4))) == [3, 4]
    file = io.BytesIO()
    export(directory, MessageSelection(first=2, last=3), JsonLines(file))
    (line,) = lines(file.getvalue())
    assert (line["first"], line["number"], line["properties"]) == (2, 3, {"symbol": "ABC"})
