"""The thread behind a recorder: what it cannot encode or write is told once, and nothing hangs."""

import os
import queue
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from stablecast.core.protocol.effects import Release
from stablecast.core.protocol.inputs import Start
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.frames import Foot, digest, text_of
from stablecast.evidence.trace.writer import (
    PARTS,
    ROLLING,
    Encoder,
    FrameEnding,
    FrameOpening,
    Record,
    RecordPiece,
    TraceRolling,
    TraceWriter,
)
from tests.adapters.evidence.trace.traced import drain, read_frames

BEFORE: Json = {"before": 1}
AFTER: Json = {"after": 2}


def whole(number: int, *records: Record, time: int = 5) -> RecordPiece:
    return RecordPiece(10, time, list(records), FrameOpening(number, 0, BEFORE), FrameEnding(AFTER, closed=False))


def writer_at(path: Path, report: Callable[[str], None] = pytest.fail, rolling: TraceRolling = ROLLING) -> TraceWriter:
    return TraceWriter(
        os.open(path, os.O_WRONLY | os.O_CREAT), 0, path, Encoder(Role.SOURCE, "orders"), report, rolling
    )


def test_a_frame_is_encoded_with_consecutive_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    writer = writer_at(path)
    writer.offer(RecordPiece(10, 5, [(5, Start(), [])], FrameOpening(3, 0, BEFORE)), wait=True)
    writer.offer(RecordPiece(11, 6, [(6, Start(), [Release(9)])]), wait=True)
    writer.close(RecordPiece(12, 7, [], None, FrameEnding(AFTER, closed=True)))
    (frame,) = read_frames(path)
    assert (frame.head.frame, frame.head.role, frame.head.endpoint, frame.head.first) == (3, Role.SOURCE, "orders", 10)
    assert frame.head.snapshot == BEFORE
    assert frame.records == [
        {"n": 10, "t": 5, "in": {"_": "Start"}, "out": []},
        {"n": 11, "t": 6, "in": {"_": "Start"}, "out": [{"_": "Release", "number": 9}]},
    ]
    assert frame.foot == Foot(2, digest(AFTER), closed=True)


def test_frames_are_written_in_order_and_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    writer = writer_at(path)
    descriptor = writer._descriptor
    assert all(writer.offer(whole(number), wait=True) for number in range(20))
    writer.close(whole(20))
    assert [frame.head.frame for frame in read_frames(path)] == list(range(21))
    assert not writer.full
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_snapshot_between_two_frames_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Json] = []

    def counted(state: Json) -> bytes:
        encoded.append(state)
        return text_of(state)

    monkeypatch.setattr("stablecast.evidence.trace.writer.text_of", counted)
    writer = writer_at(tmp_path / "a.sct")
    writer.offer(whole(0), wait=True)
    writer.close(RecordPiece(10, 5, [], FrameOpening(1, 0, AFTER), FrameEnding({"end": 3}, closed=True)))
    assert encoded == [BEFORE, AFTER, {"end": 3}]
    assert writer.snapshot_bytes == len(b'{"end":3}')


def test_a_frame_behind_which_records_were_dropped_does_not_say_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    writer = writer_at(path)
    writer.offer(RecordPiece(10, 5, [(5, Start(), [])], FrameOpening(0, 0, BEFORE)), wait=True)
    writer.close(RecordPiece(13, 7, [], FrameOpening(1, 2, AFTER), FrameEnding(AFTER, closed=True)))
    first, second = read_frames(path)
    assert first.foot == Foot(1, "", closed=False)
    assert (second.head.gap, second.head.first) == (2, 13)


def test_a_record_that_cannot_be_encoded_ends_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.sct"
    told: list[str] = []
    writer = writer_at(path, told.append)
    foreign: Record = (0, "no input", [])  # type: ignore[assignment]
    assert writer.offer(whole(0), wait=True)
    assert all(writer.offer(whole(number, foreign), wait=True) for number in range(1, 20))
    writer.close(whole(20))
    assert len(told) == 1
    assert told[0].startswith(f"the trace {path} ends here: ")
    assert [frame.head.frame for frame in read_frames(path)] == [0]


def parts(directory: Path) -> dict[str, list[int]]:
    return {path.name: [frame.head.frame for frame in read_frames(path)] for path in sorted(directory.iterdir())}


def test_a_trace_goes_on_in_another_file_after_so_many_bytes(tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "a.sct", rolling=TraceRolling(size_bytes=1))
    for number in range(3):
        writer.offer(whole(number), wait=True)
    writer.close(whole(3))
    assert parts(tmp_path) == {"a.sct": [0], "a.1.sct": [1], "a.2.sct": [2], "a.3.sct": [3]}


def test_a_trace_goes_on_in_another_file_after_so_long(tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "a.sct", rolling=TraceRolling(span_ns=10))
    for number, time in enumerate((5, 14, 15, 24)):
        writer.offer(whole(number, time=time), wait=True)
    writer.close(whole(4, time=30))
    assert parts(tmp_path) == {"a.sct": [0, 1], "a.1.sct": [2, 3], "a.2.sct": [4]}


def test_only_so_many_files_of_a_trace_stay_and_it_is_said_once(tmp_path: Path) -> None:
    path, told = tmp_path / "a.sct", list[str]()
    writer = writer_at(path, told.append, TraceRolling(size_bytes=1, keep=2))
    for number in range(4):
        writer.offer(whole(number), wait=True)
    writer.close(whole(4))
    assert parts(tmp_path) == {"a.3.sct": [3], "a.4.sct": [4]}
    (sentence,) = told
    assert sentence == (
        f"the trace {path} has reached its bound: a.sct is deleted, and from now on always the oldest file; "
        "set STABLECAST_TRACE_LIMIT or STABLECAST_TRACE_KEEP for more"
    )


def test_only_so_many_bytes_of_a_trace_stay(tmp_path: Path) -> None:
    """The limit holds for any writes; the newest file always stays."""
    limit, told = 4000, list[str]()
    writer = writer_at(tmp_path / "a.sct", told.append, TraceRolling(limit_bytes=limit))
    for number in range(200):
        writer.offer(whole(number), wait=True)
        drain(writer)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= limit + 200
    writer.close(whole(200))
    found = parts(tmp_path)
    assert len(found) >= PARTS - 1
    assert [number for name in sorted(found, key=lambda name: found[name]) for number in found[name]][-1] == 200
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > limit // 2
    assert len(told) == 1


def test_without_a_limit_all_stays(tmp_path: Path) -> None:
    writer = writer_at(tmp_path / "a.sct", rolling=TraceRolling(size_bytes=1, limit_bytes=0))
    for number in range(20):
        writer.offer(whole(number), wait=True)
    writer.close(whole(20))
    assert len(parts(tmp_path)) == 21


def test_a_part_that_is_there_already_ends_the_trace(tmp_path: Path) -> None:
    (tmp_path / "a.1.sct").write_text("somebody else's")
    told: list[str] = []
    writer = writer_at(tmp_path / "a.sct", told.append, TraceRolling(size_bytes=1))
    writer.offer(whole(0), wait=True)
    writer.close(whole(1))
    assert len(told) == 1
    assert "File exists" in told[0]
    assert (tmp_path / "a.1.sct").read_text() == "somebody else's"


def test_a_trace_whose_file_was_removed_says_so_and_ends(tmp_path: Path) -> None:
    path, told = tmp_path / "a.sct", list[str]()
    writer = writer_at(path, told.append)
    assert writer.offer(whole(0), wait=True)
    cast("queue.Queue[object]", writer._queue).join()
    path.unlink()
    assert writer.offer(whole(1), wait=True)
    writer.close(whole(2))
    assert len(told) == 1
    assert "removed" in told[0]
