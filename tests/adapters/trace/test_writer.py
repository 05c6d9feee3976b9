"""The thread behind a recorder: what it cannot encode or write is told once, and nothing hangs."""

import os
from pathlib import Path

import attrs
import pytest

from stablecast.core.effects import Release
from stablecast.core.inputs import Start
from stablecast.core.messages import Role
from stablecast.trace.frames import digest, parse_frame, read_frames
from stablecast.trace.writer import Pending, Record, Rolling, Writer, encode


def pending(number: int, *records: Record) -> Pending:
    return Pending(number, Role.SOURCE, "orders", 10, 0, 5, {"before": 1}, list(records), {"after": 2}, closed=False)


def test_a_frame_is_encoded_with_consecutive_numbers() -> None:
    frame = parse_frame(encode(pending(3, (5, Start(), []), (6, Start(), [Release(9)]))))
    assert (frame.head.frame, frame.head.role, frame.head.endpoint, frame.head.first) == (3, Role.SOURCE, "orders", 10)
    assert frame.head.snapshot == {"before": 1}
    assert frame.records == [
        {"n": 10, "t": 5, "in": {"_": "Start"}, "out": []},
        {"n": 11, "t": 6, "in": {"_": "Start"}, "out": [{"_": "Release", "number": 9}]},
    ]
    assert (frame.foot.records, frame.foot.digest) == (2, digest({"after": 2}))


def test_frames_are_written_in_order_and_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    told: list[str] = []
    writer = Writer(descriptor, 0, path, told.append)
    assert all(writer.offer(pending(number), wait=True) for number in range(20))
    writer.close(pending(20))
    assert [frame.head.frame for frame in read_frames(path)] == list(range(21))
    assert told == []
    assert not writer.full
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_what_cannot_be_encoded_ends_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    told: list[str] = []
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT), 0, path, told.append)
    foreign: Record = (0, "no input", [])  # type: ignore[assignment]
    assert writer.offer(pending(0), wait=True)
    assert all(writer.offer(pending(number, foreign), wait=True) for number in range(1, 20))
    writer.close(pending(20))
    assert len(told) == 1
    assert told[0].startswith(f"the trace {path} ends here: ")
    assert [frame.head.frame for frame in read_frames(path)] == [0]


def parts(directory: Path) -> dict[str, list[int]]:
    """The frames of each file."""
    return {path.name: [frame.head.frame for frame in read_frames(path)] for path in sorted(directory.iterdir())}


def test_a_trace_goes_on_in_another_file_after_so_many_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT), 0, path, pytest.fail, Rolling(size_bytes=1))
    for number in range(3):
        writer.offer(pending(number), wait=True)
    writer.close(pending(3))
    assert parts(tmp_path) == {"a.sct": [0], "a.1.sct": [1], "a.2.sct": [2], "a.3.sct": [3]}


def test_a_trace_goes_on_in_another_file_after_so_long(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT), 0, path, pytest.fail, Rolling(span_ns=10))
    for number, time in enumerate((5, 14, 15, 24)):
        writer.offer(attrs.evolve(pending(number), time=time), wait=True)
    writer.close(attrs.evolve(pending(4), time=30))
    assert parts(tmp_path) == {"a.sct": [0, 1], "a.1.sct": [2, 3], "a.2.sct": [4]}


def test_only_so_many_files_of_a_trace_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT), 0, path, pytest.fail, Rolling(size_bytes=1, keep=2))
    for number in range(4):
        writer.offer(pending(number), wait=True)
    writer.close(pending(4))
    assert parts(tmp_path) == {"a.3.sct": [3], "a.4.sct": [4]}


def test_a_part_that_is_there_already_ends_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    (tmp_path / "a.1.sct").write_text("somebody else's")
    told: list[str] = []
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT), 0, path, told.append, Rolling(size_bytes=1))
    writer.offer(pending(0), wait=True)
    writer.close(pending(1))
    assert len(told) == 1
    assert "File exists" in told[0]
    assert (tmp_path / "a.1.sct").read_text() == "somebody else's"
