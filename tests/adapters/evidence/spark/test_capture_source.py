"""`spark.read.format("stablecast-capture")`."""

import errno
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, In, IsNull
from pyspark.sql.types import ArrayType, LongType, StringType, StructType

from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.files import CaptureError, files_of
from stablecast.evidence.spark import capture_source
from stablecast.evidence.spark.capture_source import COLUMNS, FORMAT, CaptureReader, CaptureSource, parts_of
from tests.support import captures as files
from tests.support.captures import datagram
from tests.support.traffic_capture import GROUP, SOURCE, all_kinds

OURS = all_kinds().packets
NUMBERS = ("frame", "offset", "time")
"""The columns that are numbers."""


def schema(*names: str) -> StructType:
    kind = StructType()
    for name in names:
        one = (
            ArrayType(StringType())
            if name in ("types", "problems")
            else LongType()
            if name in NUMBERS
            else StringType()
        )
        kind = kind.add(name, one)
    return kind


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Return a capture with all kinds of packets, and one of nonsense."""
    return files.pcap(tmp_path / "a.pcap", [*OURS, datagram(SOURCE, GROUP, b"nonsense")])


def reader(*paths: Path, size: int = 1 << 20, columns: tuple[str, ...] = tuple(COLUMNS)) -> CaptureReader:
    options = {"paths": ",".join(map(str, paths)), "pieceBytes": str(size)}
    return CaptureSource(options).reader(schema(*columns))


def rows(reader: CaptureReader) -> list[dict[str, object]]:
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    return [row for one in partitions for batch in reader.read(one) for row in batch.to_pylist()]


def test_packets_are_rows(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_source, "BATCH", 7)
    found = rows(reader(capture))
    expected = list(packets(capture))
    assert [(row["frame"], row["time"], row["verdict"]) for row in found] == [
        (packet.number, packet.time_ns, packet.verdict.value) for packet in expected
    ]
    assert [row["types"] for row in found] == [[layer.type for layer in packet.layers] for packet in expected]
    assert {row["source"] for row in found} >= {f"{SOURCE[0]}:{SOURCE[1]}"}
    assert any(row["problems"] for row in found)
    assert list(found[0]) == list(COLUMNS)


def test_the_format_has_a_name() -> None:
    assert CaptureSource.name() == FORMAT == "stablecast-capture"


def test_only_the_columns_that_are_asked_for(capture: Path) -> None:
    assert list(rows(reader(capture, columns=("verdict", "frame")))[0]) == ["verdict", "frame"]


def test_parts_have_every_frame_once(capture: Path) -> None:
    parts = parts_of(capture, 500)
    assert len(parts) > 2
    numbers = [row["frame"] for row in rows(reader(capture, size=500)) if row["frame"]]
    assert numbers == list(range(1, len(OURS) + 2))


def test_a_query(spark: SparkSession, capture: Path) -> None:
    table = spark.read.format("stablecast-capture").load(str(capture.parent))
    counted = {row.verdict: row["count"] for row in table.groupBy("verdict").count().collect()}
    assert sum(counted.values()) == len(list(packets(capture)))


def test_files_that_are_not_asked_for_are_not_read(capture: Path) -> None:
    other = files.pcapng(capture.with_name("b.pcapng"), OURS)
    both = reader(capture.parent)
    filters = [IsNull(("kind",)), In(("path",), (str(capture), str(other))), EqualTo(("path",), str(other))]
    assert list(both.pushFilters(filters)) == filters
    assert {row["path"] for row in rows(both)} == {str(other)}


def test_files_directories_and_patterns(capture: Path, tmp_path: Path) -> None:
    assert files_of([tmp_path]) == files_of([tmp_path / "*.pcap"]) == files_of([capture]) == [capture]
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "b*.pcap"):
        with pytest.raises(CaptureError, match=r"there are no captures .*: name files of pcap or pcapng"):
            files_of([nothing])


def test_an_unreadable_capture_is_a_sentence_that_names_it(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, empty, missing = tmp_path / "cut.pcap", tmp_path / "empty.pcap", tmp_path / "missing.pcap"
    cut.write_bytes(capture.read_bytes()[:-3])
    empty.touch()
    for path, sentence in (
        (cut, f"ends in the middle of frame {len(OURS) + 1}; if it was copied, copy it again"),
        (empty, "is not a capture: it is empty; name a pcap or pcapng file"),
        (missing, "cannot be read: No such file or directory; correct the path"),
    ):
        with pytest.raises(CaptureError) as raised:
            reader(path).partitions()
        assert str(raised.value) == f"{path} {sentence}"

    def refuse(_: Path) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(CaptureError, match="cannot be read: Permission denied; give this user access to it"):
        files_of([tmp_path])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "name the captures"),
        ({"path": "x", "pieceBytes": "many"}, "pieceBytes is a number"),
        ({"path": "x", "pieceBytes": "0"}, "pieceBytes is a number"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(CaptureError, match=sentence):
        CaptureSource(options)


def test_a_column_that_there_is_not(capture: Path) -> None:
    with pytest.raises(CaptureError, match="no column 'color'"):
        reader(capture, columns=("color",))
