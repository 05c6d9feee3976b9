"""The recorder: cheap while the endpoint runs, complete when it is closed, honest when the disk is too slow."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.inputs import Start, Tick
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace import trace_recorder
from stablecast.evidence.trace.activation import VARIABLE
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.trace_judge import verify_file, verify_paths
from stablecast.evidence.trace.trace_recorder import (
    FLUSH_NS,
    FRAME_BYTES,
    FRAME_NS,
    PIECE_RECORDS,
    SPACING,
    TEXT_BYTES,
    Recorder,
)
from stablecast.evidence.trace.writer import MAX_PENDING
from stablecast.runtime.driver import Driven
from tests.adapters.evidence.trace.traced import drain, read_frames
from tests.support.machine import replace
from tests.support.processes import HANG_S


class Gate:
    """A disk that waits until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()
        self.write = os.pwrite
        replace(monkeypatch, "files", pwrite=self)

    def __call__(self, descriptor: int, data: bytes, offset: int) -> int:
        self.reached.set()
        assert self.opened.wait(HANG_S)
        return self.write(descriptor, data, offset)


def new_store() -> StoreEndpoint:
    return StoreEndpoint.create(StoreConfig("10.0.0.1:14567", 1))


def counts(path: Path) -> list[int]:
    """Return the records in each frame except the first, which never has any."""
    first, *others = [len(frame.records) for frame in read_frames(path)]
    assert first == 0
    return others


@pytest.fixture
def store() -> StoreEndpoint:
    return new_store()


@pytest.fixture
def trace(tmp_path: Path, store: StoreEndpoint) -> Recorder:
    return Recorder(tmp_path, Role.STORE, "a", store, patient=True)


def written(path: Path) -> int:
    """Return the records that a reader finds, with those of an unfinished frame."""
    return sum(frame.count for frame in read_frames(path))


def test_the_first_record_is_written_at_once_and_then_a_piece_for_each_interval(
    store: StoreEndpoint, trace: Recorder
) -> None:
    driven = Driven(store, trace)
    driven.feed(Start(), 0)
    found = []
    for moment in (1, 2, FLUSH_NS - 1, FLUSH_NS, FLUSH_NS + 1, 3 * FLUSH_NS, 3 * FLUSH_NS + 5):
        driven.timeout(moment)
        drain(trace._writer)
        found.append(written(trace.path))
    assert found == [1, 1, 1, 5, 5, 7, 7]
    driven.close()
    assert counts(trace.path) == [8]
    assert [frame.foot.closed for frame in read_frames(trace.path)] == [False, True]
    assert verify_file(trace.path).clean


def test_a_frame_ends_when_it_is_old_or_long_enough(trace: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_recorder, "SPACING", 0)
    later = FRAME_NS + FLUSH_NS
    for moment in (0, FRAME_NS - FLUSH_NS, FRAME_NS, later):
        trace.record(Tick(), moment, [])
    for _ in range(FRAME_BYTES // TEXT_BYTES):
        trace.record(Tick(), later, [])
    trace.record(Tick(), later + FLUSH_NS, [])
    trace.close()
    assert counts(trace.path) == [3, 1 + FRAME_BYTES // TEXT_BYTES, 1]


def test_a_frame_is_not_ended_before_its_records_are_longer_than_its_snapshot(
    store: StoreEndpoint, trace: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However idle the endpoint is: else a large state would be written again and again."""
    least = -(-SPACING * trace._writer.snapshot_bytes // TEXT_BYTES)
    for number in range(least + 1):
        trace.record(Tick(), number * FRAME_NS, [])
    trace.close()
    assert counts(trace.path) == [least, 1]
    monkeypatch.setattr(trace_recorder, "MAX_FRAME_BYTES", 2 * TEXT_BYTES)
    bounded = Recorder(trace.path.parent, Role.STORE, "b", store, patient=True)
    for number in range(5):
        bounded.record(Tick(), number * FLUSH_NS, [])
    bounded.close()
    assert counts(bounded.path) == [2, 2, 1]


def test_snapshots_of_a_large_and_idle_store_are_a_small_part_of_its_trace(tmp_path: Path) -> None:
    """A hundred thousand messages, each a run of its own, and a day of which five minutes are played."""
    store = new_store()
    client = Client(Role.SOURCE, 1000, 0, "orders", 42, 7, 0, "10.0.0.2:1", "10.0.0.2:2", 0, 0, -1, ())
    store.recover([client], [], {}, 0)
    extents = store.repositories[1000].window.memory
    for number in range(100_000):
        extents.add(number, number + 1, 100, 1_234_567 * number)
    trace = Recorder(tmp_path, Role.STORE, "a", store, patient=True)
    began, driven = trace.path.stat().st_size, Driven(store, trace)
    for tick in range(3000):
        driven.timeout(tick * 100 * MILLISECOND)
        drain(trace._writer)
    snapshot = trace._writer.snapshot_bytes
    frames = list(read_frames(trace.path))
    trace.close()
    assert snapshot > 2_000_000
    assert len(frames) == 2, "the snapshot at the start, and that of the first frame"
    assert trace.path.stat().st_size - 2 * began < 100_000
    assert verify_file(trace.path).clean


def test_a_piece_has_a_bound(trace: Recorder) -> None:
    for _ in range(PIECE_RECORDS + 2):
        trace.record(Tick(), 0, [])
    drain(trace._writer)
    assert written(trace.path) == PIECE_RECORDS + 1, "one is not written yet"
    trace.close()
    assert counts(trace.path) == [PIECE_RECORDS + 2]


def test_a_piece_has_a_bound_of_effects(trace: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_recorder, "PIECE_EFFECTS", 0)
    for number in range(3):
        trace.record(Tick(), 0, [])
        drain(trace._writer)
        assert written(trace.path) == number + 1
    trace.close()
    assert counts(trace.path) == [3]


def test_flush_ends_a_frame_that_has_records(trace: Recorder) -> None:
    for moment in (0, 1, 2):
        trace.record(Tick(), moment, [])
    trace.flush()
    trace.flush()
    trace.close()
    assert counts(trace.path) == [3, 0]


def test_an_endpoint_that_did_nothing_leaves_a_trace_that_says_so(trace: Recorder) -> None:
    trace.close()
    report = verify_file(trace.path)
    assert (report.clean, report.closed, report.frames, report.records) == (True, True, 2, 0)


def test_records_after_close_are_dropped(trace: Recorder) -> None:
    trace.close()
    trace.record(Tick(), 0, [])
    trace.flush()
    trace.close()
    assert counts(trace.path) == [0]


def test_a_slow_disk_makes_pieces_grow_and_then_drops_them(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_recorder, "PIECE_RECORDS", 3)
    trace = Recorder(tmp_path, Role.STORE, "a", store)
    gate = Gate(monkeypatch)
    driven = Driven(store, trace)
    driven.feed(Start(), 0)
    assert gate.reached.wait(HANG_S)
    steps = range(1, MAX_PENDING + 10)
    for step in steps:
        driven.timeout(step * FLUSH_NS)
    gate.opened.set()
    driven.close()
    # The first piece is at the disk, as many as may wait follow; of the rest, three full pieces are dropped.
    assert counts(trace.path) == [1 + MAX_PENDING, 0]
    report = verify_file(trace.path)
    assert report.clean
    assert report.gaps == 9
    assert report.records + report.gaps == 1 + len(steps)
    assert [frame.head.frame for frame in read_frames(trace.path)] == [0, 1, 2]


def test_after_a_gap_the_trace_goes_on(tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_recorder, "PIECE_RECORDS", 1)
    trace = Recorder(tmp_path, Role.STORE, "a", store)
    gate = Gate(monkeypatch)
    driven = Driven(store, trace)
    driven.feed(Start(), 0)
    assert gate.reached.wait(HANG_S)
    for moment in range(MAX_PENDING + 5):
        driven.timeout(moment)
    gate.opened.set()
    drain(trace._writer)
    for moment in (1000, 1001):
        driven.timeout(moment)
    driven.close()
    assert counts(trace.path) == [1 + MAX_PENDING, 1]
    frames = list(read_frames(trace.path))
    assert [frame.head.gap for frame in frames] == [0, 0, 6]
    assert [frame.foot.ends_known for frame in frames] == [True, False, True]
    assert verify_file(trace.path).clean


def test_a_frame_that_was_to_begin_in_a_gap_is_none(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_recorder, "PIECE_RECORDS", 1)
    trace = Recorder(tmp_path, Role.STORE, "a", store)
    gate = Gate(monkeypatch)
    driven = Driven(store, trace)
    for moment in range(3 * MAX_PENDING):
        driven.timeout(moment)
        assert gate.reached.wait(HANG_S)
        if moment == MAX_PENDING - 1:
            trace.flush()  # The last that finds room: the next piece was to begin a frame.
    gate.opened.set()
    drain(trace._writer)
    for moment in (1000, 1001, 1002):
        driven.timeout(moment)
    driven.close()
    report = verify_file(trace.path)
    assert report.clean
    assert report.records + report.gaps == 3 * MAX_PENDING + 3
    frames = list(read_frames(trace.path))
    assert [(frame.head.frame, frame.head.gap) for frame in frames] == [(0, 0), (1, 0), (2, 2 * MAX_PENDING + 1)]
    assert all(frame.foot.ends_known for frame in frames)


def test_a_full_disk_ends_the_trace_and_not_the_endpoint(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, told = os.pwrite, list[str]()
    trace = Recorder(tmp_path, Role.STORE, "a", store, report=told.append)
    for moment in range(4):
        trace.record(Tick(), moment, [])
        trace.flush()
        drain(trace._writer)
        end = trace._writer._end

        def full(descriptor: int, data: bytes, offset: int, end: int = end) -> int:
            if offset > end:
                raise OSError(28, "No space left on device")
            return write(descriptor, data, offset)

        if moment == 1:
            replace(monkeypatch, "files", pwrite=full)
    trace.close()
    assert told == [
        f"the trace {trace.path} ends here: No space left on device; make room or choose another place, then restart"
    ]
    assert counts(trace.path) == [1, 1]


def test_a_disk_that_is_full_from_the_start_gets_one_sentence(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    replace(monkeypatch, "files", pwrite=full)
    with pytest.raises(TraceError, match=r"no trace can be written in .*: No space left on device; name another"):
        Recorder(tmp_path, Role.STORE, "a", store)
    assert list(tmp_path.iterdir()) == []


def test_complaints_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    trace_recorder.complain("the trace ends here")
    assert capsys.readouterr().err == "stablecast: the trace ends here\n"


def test_names_of_files_are_safe_and_never_taken_twice(tmp_path: Path, store: StoreEndpoint) -> None:
    traces = [Recorder(tmp_path / "new" / "folder", Role.STORE, "../a b/:1", store) for _ in range(2)]
    for trace in traces:
        trace.close()
    stems = [trace.path.name.rpartition("-")[0] for trace in traces]
    assert stems == [f"store-.._a_b_1-{os.getpid()}"] * 2
    assert traces[0].path != traces[1].path
    assert all(trace.path.parent == tmp_path / "new" / "folder" for trace in traces)


def test_a_file_of_an_earlier_process_is_not_touched(tmp_path: Path, store: StoreEndpoint) -> None:
    number = int(Recorder(tmp_path, Role.STORE, "a", store).path.stem.rpartition("-")[2])
    old = tmp_path / f"store-a-{os.getpid()}-{number + 1}.sct"
    old.write_text("precious")
    trace = Recorder(tmp_path, Role.STORE, "a", store)
    trace.close()
    assert trace.path != old
    assert old.read_text() == "precious"


def test_a_directory_that_cannot_be_made_gets_one_sentence(tmp_path: Path, store: StoreEndpoint) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match=r"no trace can be written in .*file/traces: Not a directory; name another"):
        Recorder(tmp_path / "file" / "traces", Role.STORE, "a", store)


CHILD = textwrap.dedent("""
    import sys
    from pathlib import Path
    from stablecast.core.protocol.inputs import Start
    from stablecast.core.protocol.messages import Role
    from stablecast.core.protocol.settings import StoreConfig
    from stablecast.core.store import StoreEndpoint
    from stablecast.evidence.trace import recorder
    from stablecast.runtime.driver import Driven
    from stablecast.evidence.trace.container import TextReader
    store = StoreEndpoint.create(StoreConfig("10.0.0.1:14567", 1))
    trace = recorder(Role.STORE, "child", store)
    driven, told = Driven(store, trace), False
    driven.feed(Start(), 0)
    for moment in range(1, int(sys.argv[1])):
        driven.timeout(moment * 1_000_000)
        if not told and moment % 1000 == 0 and len(list(TextReader(trace.path).read(ended=True))) > 1:
            told = True
            print("busy", flush=True)
""")


def child(directory: Path, steps: int) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, VARIABLE: str(directory), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", CHILD, str(steps)], env=environment, stdout=subprocess.PIPE)


def test_a_killed_process_leaves_a_trace_that_verifies(tmp_path: Path) -> None:
    with child(tmp_path, 10**12) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"busy\n"
        process.send_signal(signal.SIGKILL)
    (path,) = tmp_path.iterdir()
    report = verify_file(path)
    assert report.clean
    assert not report.closed
    assert report.records > 0
    *finished, last = read_frames(path)
    assert not last.foot.ends_known, "the frame that was open"
    assert last.count
    assert verify_paths([path]).records == sum(frame.count for frame in (*finished, last))


def test_a_process_that_just_ends_closes_its_trace(tmp_path: Path) -> None:
    with child(tmp_path, 100) as process:
        pass
    assert process.returncode == 0
    (path,) = tmp_path.iterdir()
    report = verify_file(path)
    assert (report.clean, report.closed, report.records) == (True, True, 100)
