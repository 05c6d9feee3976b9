"""Traces of real processes can be verified, and snapshots are a small part of them, even of idle processes."""

from pathlib import Path

from stablecast.evidence.trace.file_names import traces_in
from stablecast.evidence.trace.trace_judge import verify_paths
from tests.adapters.evidence.trace.traced import read_frames
from tools.bench.process_traces import write

MESSAGES = 3000
IDLE_SECONDS = 3.0


def test_real_processes_write_few_snapshots(tmp_path: Path) -> None:
    records = write(tmp_path / "traces", MESSAGES, IDLE_SECONDS)
    found = traces_in(tmp_path / "traces")
    summary = verify_paths(found)
    assert summary.clean
    assert summary.records == records > MESSAGES
    assert sorted(report.role for report in summary.files) == ["receiver", "source", "store"]
    for path in found:
        _, *frames = read_frames(path)
        assert 2 * sum(len(frame.head.text) for frame in frames) < sum(len(frame.body) for frame in frames)
