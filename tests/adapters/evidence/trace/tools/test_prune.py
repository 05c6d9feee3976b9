"""A pruned trace can be verified, and does not look like a whole one."""

from pathlib import Path

import pytest

from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.tools.prune import prune
from stablecast.evidence.trace.tools.records import TraceWindow
from stablecast.evidence.trace.trace_judge import verify_paths
from tests.adapters.evidence.trace.traced import read_frames


def test_an_endpoint_can_be_kept(traces: Path, tmp_path: Path) -> None:
    done = prune([traces], tmp_path / "left", TraceWindow(endpoint="source"))
    assert 0 < done.kept < done.frames
    assert 0 < done.kept_bytes < done.size
    kept = sorted(path.name for path in (tmp_path / "left").iterdir())
    assert kept == sorted(path.name for path in traces.glob("source-*.sct"))
    assert not any(report.violations for report in verify_paths((tmp_path / "left").iterdir()).files)


def test_a_time_can_be_kept(traces: Path, tmp_path: Path) -> None:
    """The copy of a trace without its beginning is a later part."""
    path = max(traces.glob("*.sct"), key=lambda one: len(list(read_frames(one))))
    frames = list(read_frames(path))
    since = frames[1].head.time if len(frames) > 1 else frames[0].head.time
    done = prune([path], tmp_path / "left", TraceWindow(since=since + 1))
    (copy,) = (tmp_path / "left").iterdir()
    assert done.kept <= done.frames
    assert not any(report.violations for report in verify_paths([copy]).files)
    until = prune([path], tmp_path / "before", TraceWindow(until=frames[0].head.time))
    assert until.kept >= 1


def test_nothing_that_matters_leaves_nothing(traces: Path, tmp_path: Path) -> None:
    assert prune([traces], tmp_path / "left", TraceWindow(endpoint="nobody")).kept == 0
    assert list((tmp_path / "left").iterdir()) == []


def test_an_existing_directory_is_not_overwritten(traces: Path, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is there already"):
        prune([traces], tmp_path, TraceWindow())


def test_a_frame_that_is_not_finished_is_copied_too(torn: Path, tmp_path: Path) -> None:
    prune([torn], tmp_path / "all", TraceWindow())
    for path in torn.glob("*.sct"):
        assert (tmp_path / "all" / path.name).read_bytes() == path.read_bytes()
