"""The thread behind a recorder: what it cannot encode or write is told once, and nothing hangs."""

import os
from pathlib import Path

import pytest

from stablecast.core.effects import Release
from stablecast.core.inputs import Start
from stablecast.core.messages import Role
from stablecast.trace.frames import digest, parse_frame, read_frames
from stablecast.trace.writer import Pending, Record, Writer, encode


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
