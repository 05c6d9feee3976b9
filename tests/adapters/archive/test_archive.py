"""`stablecast archive`: each stable message once, over runs, kills and reclaimed messages, and queries that use it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.left_out import NO_SPARK

pytest.importorskip("pyspark", reason=NO_SPARK)

from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from stablecast.archive.archived_rows import archived_rows, first_since
from stablecast.archive.archiver import opened
from stablecast.archive.manifest import ArchivedFile, ArchivedHole, ArchivedSource, ArchiveError, Manifest
from stablecast.spark.message_ranges import TopicError
from stablecast.spark.message_source import MessageSource, TopicStreamReader, TopicTableReader
from stablecast.text.exit_status import FAILED
from tests.support.processes import until
from tests.support.program import outcome, store
from tests.support.stored_orders import held_orders, send_orders


def stream(**options: str) -> TopicStreamReader:
    return MessageSource({"path": "orders", **options}).streamReader(SCHEMA)


def table(**options: str) -> list[int]:
    reader: TopicTableReader = MessageSource({"path": "orders", **options}).reader(SCHEMA)
    return numbers(reader, reader.partitions())


SCHEMA = StructType().add("number", "long").add("payload", "binary")


def numbers(reader: TopicStreamReader | TopicTableReader, partitions: object) -> list[int]:
    """Return the numbers of partitions in the order of their rows, each checked against its payload."""
    found = []
    for partition in partitions:  # type: ignore[attr-defined]
        for batch in reader.read(partition):
            for row in batch.to_pylist():
                assert row["payload"] == b"%d" % row["number"]
                found.append(row["number"])
    return found


def test_a_query_begins_in_the_archive_and_continues_in_the_stores(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    with store(tmp_path / "a", "-o", "repository-allow-receiver-paced-persistence=1") as (_, address):

        def archive() -> int:
            arguments = ("archive", "orders", "--output", folder, "-s", address, "--session-id", "5", "--json")
            status, out, err = outcome(*arguments)
            assert status == 0, err
            return int(json.loads(out)["messages"])

        send_orders(address, 0, 0)
        assert archive() == 0
        send_orders(address, 0, 100)
        assert held_orders(address) == [(0, 100)]
        # A run that was killed left a file that no manifest names.
        (folder / "day=2026-01-01").mkdir()
        (folder / "day=2026-01-01" / "7-0.parquet").write_bytes(b"unfinished")
        assert archive() == 100
        assert not (folder / "day=2026-01-01" / "7-0.parquet").exists()
        assert until(lambda: held_orders(address) == []), "what is archived is released"
        between = datetime.now(UTC).isoformat()
        send_orders(address, 100, 150)
        reader = stream(stores=address, archive=f"file://{folder}")
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, ReadAllAvailable())
        partitions = reader.partitions(begin, end)
        assert [one.value.archived for one in partitions] == [True, False]
        assert numbers(reader, partitions) == list(range(150))
        assert archive() == 50
        assert until(lambda: held_orders(address) == [])
        # A batch that is planned again after the next run has the same rows.
        assert numbers(reader, reader.partitions(begin, end)) == list(range(150))
        given = {"stores": address, "archive": str(folder)}
        assert table(**given, start="last 20") == list(range(130, 150))
        assert table(**given, start="90", end="110") == list(range(90, 110))
        assert table(**given, start=between) == list(range(100, 150))
        assert table(**given, end=between) == list(range(100))


def test_what_a_limit_let_go_is_a_hole_of_the_archive(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    with store(tmp_path / "a", "-o", "repository-disk-file-size-limit=200000") as (_, address):
        send_orders(address, 0, 10, paced=False)
        arguments = ("archive", "orders", "--output", folder, "-s", address)
        assert outcome(*arguments)[0] == 0
        send_orders(address, 10, 30_000, paced=False)
        [(kept, stop)] = held_orders(address)
        assert kept > 10, "the limit let messages go"
        status, _, err = outcome(*arguments)
        assert (status, stop) == (FAILED, 30_000)
        assert f"messages 10 to {kept - 1}" in err, err
    manifest = Manifest.load(folder)
    assert [(hole.first, hole.last) for hole in manifest.sources["7"].missing] == [(10, kept - 1)]
    assert sum(file.rows for file in manifest.files) == 10 + stop - kept


def test_a_second_run_of_an_archive_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    with opened(folder, "orders"), pytest.raises(ArchiveError, match=r"another run writes the archive .*: wait"):
        opened(folder, "orders").__enter__()
    with opened(folder, "orders") as manifest:
        assert manifest.sources == {}


def archived(folder: Path) -> Manifest:
    """Return an archive of numbers 0 to 9 of which 4 and 5 are missing, and number 7 came a day late."""
    from stablecast.archive.day_files import DayFiles  # noqa: PLC0415 - needs pyarrow

    folder.mkdir()
    writer = DayFiles(folder)
    same = {"topic": "orders", "source": "7", "life": "ff", "properties": None, "recovered": True}
    day = 86_400_000_000
    writer.write_rows(
        "7",
        [
            {
                **same,
                "number": number,
                "received": day + number + (day if number == 7 else 0),
                "payload": b"%d" % number,
            }
            for number in (0, 1, 2, 3, 6, 7, 8, 9)
        ],
    )
    source = ArchivedSource("ff", 0, 10, [ArchivedHole(4, 5, "let go by a limit")])
    manifest = Manifest("orders", {"7": source}, writer.finish())
    manifest.save(folder)
    return manifest


def test_numbers_ascend_over_files_of_several_days(tmp_path: Path) -> None:
    manifest = archived(tmp_path / "orders")
    assert [file.path for file in manifest.files] == ["day=1970-01-02/7-0.parquet", "day=1970-01-03/7-7.parquet"]
    assert sum(file.payload_bytes for file in manifest.files) == 8

    def read(first: int, stop: int) -> list[int]:
        batches = archived_rows(tmp_path / "orders", manifest, "7", first, stop, ["number"])
        return [row["number"] for batch in batches for row in batch.to_pylist()]

    assert read(0, 10) == [0, 1, 2, 3, 6, 7, 8, 9]
    assert read(6, 9) == [6, 7, 8]
    assert read(0, 3) == [0, 1, 2]
    day = 86_400_000_000_000
    assert first_since(tmp_path / "orders", manifest, "7", day + 8000) == 7
    assert first_since(tmp_path / "orders", manifest, "7", 2 * day + 8000) is None


def test_a_gap_in_the_archive_ends_the_query_or_is_left_out(tmp_path: Path) -> None:
    archived(tmp_path / "orders")
    given = {"stores": "127.0.0.1:1", "archive": str(tmp_path / "orders")}
    reader = stream(**given)
    partitions = reader.partitions({"7": {"ff": 0}}, {"7": {"ff": 10}})
    with pytest.raises(TopicError, match=r"messages 4 to 5 of 'orders' are missing in .* let go by a limit"):
        numbers(reader, partitions)
    assert numbers(stream(**given, missing="skip"), partitions) == [0, 1, 2, 3, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda folder: (folder / "archive.json").unlink(), "is no archive: `stablecast archive TOPIC"),
        (lambda folder: (folder / "archive.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "archive.json").write_text('{"format": 9}'), "of a newer release"),
        (lambda folder: Manifest("bills").save(folder), "is the archive of 'bills', not of 'orders'"),
    ],
)
def test_a_folder_that_is_no_archive_of_the_topic_is_one_sentence(
    tmp_path: Path, spoil: Callable[[Path], object], text: str
) -> None:
    archived(tmp_path / "orders")
    spoil(tmp_path / "orders")
    with pytest.raises(ArchiveError, match=text):
        stream(stores="127.0.0.1:1", archive=str(tmp_path / "orders")).partitions({}, {})


def test_a_file_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    manifest = archived(tmp_path / "orders")
    (tmp_path / "orders" / manifest.files[0].path).unlink()
    with pytest.raises(ArchiveError, match=r"the archived file .* cannot be read"):
        list(archived_rows(tmp_path / "orders", manifest, "7", 0, 3, ["number"]))


def test_a_manifest_names_files_by_range() -> None:
    files = [ArchivedFile("b", "7", 5, 9, 4, 0, None, None), ArchivedFile("a", "7", 0, 5, 5, 0, None, None)]
    manifest = Manifest("orders", {"7": ArchivedSource("ff", 0, 9)}, files)
    assert [file.path for file in manifest.within("7", 0, 6)] == ["a", "b"]
    assert [file.path for file in manifest.within("7", 5, 6)] == ["b"]
    assert manifest.within("8", 0, 9) == []
    assert manifest.holes("8", 0, 9) == []
