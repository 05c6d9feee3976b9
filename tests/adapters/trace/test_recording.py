"""The recorder: cheap while the endpoint runs, complete when it is closed, honest when the disk is too slow."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from stablecast.core.inputs import Start, Tick
from stablecast.core.messages import Role
from stablecast.core.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.trace import container, recording
from stablecast.trace.driven import Driven
from stablecast.trace.errors import TraceError
from stablecast.trace.frames import read_frames
from stablecast.trace.recording import FLUSH_NS, FRAME_RECORDS, KEEP, Recorder
from stablecast.trace.starting import VARIABLE, recorder
from stablecast.trace.verify import verify_file
from stablecast.trace.writer import MAX_PENDING_FRAMES


class Gate:
    """A disk that waits until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()
        self.append = container.append
        monkeypatch.setattr(container, "append", self)

    def __call__(self, descriptor: int, offset: int, text: bytes) -> int:
        self.reached.set()
        assert self.opened.wait(timeout=30)
        return self.append(descriptor, offset, text)


def new_store() -> StoreEndpoint:
    return StoreEndpoint.create(StoreConfig("10.0.0.1:14567", 1))


def counts(path: Path) -> list[int]:
    """The records in each frame but the first, which never has any."""
    first, *others = [len(frame.records) for frame in read_frames(path)]
    assert first == 0
    return others


@pytest.fixture
def store() -> StoreEndpoint:
    return new_store()


@pytest.fixture
def trace(tmp_path: Path, store: StoreEndpoint) -> Recorder:
    return Recorder(tmp_path, Role.STORE, "a", store, patient=True)


def test_the_first_record_is_written_at_once_and_then_a_frame_for_each_interval(
    store: StoreEndpoint, trace: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "SNAPSHOT_SPACING", 0)
    driven = Driven(store, trace)
    driven.feed(Start(), 0)
    for moment in (1, 2, FLUSH_NS - 1, FLUSH_NS, FLUSH_NS + 1, 3 * FLUSH_NS, 3 * FLUSH_NS + 5):
        driven.timeout(moment)
    driven.close()
    assert counts(trace.path) == [1, 4, 2, 1]
    assert [frame.foot.closed for frame in read_frames(trace.path)] == [False, False, False, False, True]
    assert verify_file(trace.path).clean


def test_a_snapshot_that_takes_long_is_taken_less_often(
    store: StoreEndpoint, trace: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "SNAPSHOT_SPACING", 10**12)
    for moment in (0, FLUSH_NS, 2 * FLUSH_NS):
        trace.record(Tick(), moment, [])
    trace.close()
    assert counts(trace.path) == [1, 2]


def test_a_frame_has_a_bound(store: StoreEndpoint, trace: Recorder) -> None:
    for _ in range(FRAME_RECORDS + 2):
        trace.record(Tick(), 0, [])
    trace.close()
    assert counts(trace.path) == [1, FRAME_RECORDS, 1]


def test_a_frame_has_a_bound_of_effects(store: StoreEndpoint, trace: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "FRAME_EFFECTS", 0)
    for _ in range(3):
        trace.record(Tick(), 0, [])
    trace.close()
    assert counts(trace.path) == [1, 1, 1, 0]


def test_flush_ends_a_frame_that_has_records(trace: Recorder) -> None:
    for moment in (0, 1, 2):
        trace.record(Tick(), moment, [])
    trace.flush()
    trace.flush()
    trace.close()
    assert counts(trace.path) == [1, 2, 0]


def test_an_endpoint_that_did_nothing_leaves_a_trace_that_says_so(trace: Recorder) -> None:
    trace.close()
    report = verify_file(trace.path)
    assert (report.clean, report.closed, report.frames, report.records) == (True, True, 2, 0)


def test_what_comes_after_close_is_not_kept(trace: Recorder) -> None:
    trace.close()
    trace.record(Tick(), 0, [])
    trace.flush()
    trace.close()
    assert counts(trace.path) == [0]


def test_a_slow_disk_makes_frames_grow_and_then_drops_them(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "SNAPSHOT_SPACING", 0)
    monkeypatch.setattr(recording, "FRAME_RECORDS", 3)
    trace = Recorder(tmp_path, Role.STORE, "a", store)
    gate = Gate(monkeypatch)
    driven = Driven(store, trace)
    driven.feed(Start(), 0)
    assert gate.reached.wait(timeout=30)
    steps = range(1, MAX_PENDING_FRAMES + 10)
    for step in steps:
        driven.timeout(step * FLUSH_NS)
    gate.opened.set()
    driven.close()
    # The first frame is at the disk, as many as may wait follow; of the rest, three full frames are dropped.
    assert counts(trace.path) == [1] * (1 + MAX_PENDING_FRAMES) + [0]
    report = verify_file(trace.path)
    assert report.clean
    assert report.gaps == 9
    assert report.records + report.gaps == 1 + len(steps)
    assert [frame.head.frame for frame in read_frames(trace.path)] == list(range(MAX_PENDING_FRAMES + 3))


def test_after_a_gap_the_trace_goes_on(tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "FRAME_RECORDS", 1)
    trace = Recorder(tmp_path, Role.STORE, "a", store)
    gate = Gate(monkeypatch)
    driven = Driven(store, trace)
    driven.feed(Start(), 0)
    assert gate.reached.wait(timeout=30)
    for moment in range(MAX_PENDING_FRAMES + 5):
        driven.timeout(moment)
    gate.opened.set()
    trace._writer._queue.join()
    driven.timeout(1000)
    driven.close()
    frames = list(read_frames(trace.path))
    assert [frame.head.gap for frame in frames] == [0] * (2 + MAX_PENDING_FRAMES) + [5, 0]
    assert verify_file(trace.path).clean


def test_a_full_disk_ends_the_trace_and_not_the_endpoint(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = container.append

    def full(descriptor: int, offset: int, text: bytes) -> int:
        if b'"frame":2' in text:
            raise OSError(28, "No space left on device")
        return append(descriptor, offset, text)

    monkeypatch.setattr(container, "append", full)
    told: list[str] = []
    trace = Recorder(tmp_path, Role.STORE, "a", store, report=told.append)
    for moment in range(4):
        trace.record(Tick(), moment, [])
        trace.flush()
    trace.close()
    assert told == [
        f"the trace {trace.path} ends here: No space left on device; make room or choose another place, then restart"
    ]
    assert counts(trace.path) == [1]


def test_a_disk_that_is_full_from_the_start_gets_one_sentence(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, text: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container, "append", full)
    with pytest.raises(TraceError, match=r"no trace can be written in .*: No space left on device; name another"):
        Recorder(tmp_path, Role.STORE, "a", store)
    assert list(tmp_path.iterdir()) == []


def test_complaints_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    recording.complain("the trace ends here")
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


def test_the_environment_names_the_directory(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert recorder(Role.STORE, "a", store) is None
    monkeypatch.setenv(VARIABLE, "")
    assert recorder(Role.STORE, "a", store) is None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    trace = recorder(Role.STORE, "a", store)
    assert trace is not None
    trace.close()
    assert trace.path.parent == tmp_path


CHILD = textwrap.dedent("""
    import sys
    from pathlib import Path
    from stablecast.core.inputs import Start
    from stablecast.core.messages import Role
    from stablecast.core.settings import StoreConfig
    from stablecast.core.store import StoreEndpoint
    from stablecast.trace import Driven, recorder
    from stablecast.trace.container import texts
    store = StoreEndpoint.create(StoreConfig("10.0.0.1:14567", 1))
    trace = recorder(Role.STORE, "child", store)
    driven, told = Driven(store, trace), False
    driven.feed(Start(), 0)
    for moment in range(1, int(sys.argv[1])):
        driven.timeout(moment * 1_000_000)
        if not told and moment % 1000 == 0 and len(list(texts(trace.path))) > 1:
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


def test_a_process_that_just_ends_closes_its_trace(tmp_path: Path) -> None:
    with child(tmp_path, 100) as process:
        pass
    assert process.returncode == 0
    (path,) = tmp_path.iterdir()
    report = verify_file(path)
    assert (report.clean, report.closed, report.records) == (True, True, 100)


def test_the_environment_says_how_many_files_of_a_trace_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEEP, "3")
    trace = recorder(Role.STORE, "a", StoreEndpoint.create(StoreConfig("s:1", 1)), tmp_path)
    assert trace is not None
    assert trace._writer._rolling.keep == 3
    trace.close()
    monkeypatch.setenv(KEEP, "many")
    with pytest.raises(TraceError, match="STABLECAST_TRACE_KEEP should be a number of files, it is 'many'"):
        recorder(Role.STORE, "a", StoreEndpoint.create(StoreConfig("s:1", 1)), tmp_path)
