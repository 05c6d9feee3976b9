"""Traces in several files, and numbers that no table can hold."""

from itertools import pairwise
from pathlib import Path

from stablecast.trace.names import part_path
from stablecast.trace.verify import verify_file, verify_paths
from tests.adapters.trace.traced import put_together, take_apart


def split(source: Path, into: Path, *ends: int) -> list[Path]:
    """The trace in parts that end before these frames."""
    frames, paths = take_apart(source), []
    for part, (start, stop) in enumerate(pairwise((0, *ends, len(frames)))):
        paths.append(put_together(part_path(into / "rolled.sct", part), frames[start:stop]))
    return paths


def test_the_parts_of_a_trace_are_one_trace(traces: Path, tmp_path: Path) -> None:
    source = max(traces.glob("store-*"), key=lambda path: path.stat().st_size)
    first, second, third = split(source, tmp_path, 3, 6)
    whole = verify_file(source)
    summary = verify_paths([third, first, second])
    assert summary.clean
    assert [report.path for report in summary.files] == [first, second, third]
    assert summary.records == whole.records
    assert [report.closed for report in summary.files] == [True, True, whole.closed]


def test_a_part_that_is_missing_is_noticed_but_for_the_oldest(traces: Path, tmp_path: Path) -> None:
    """The oldest may have been let go; then nobody can tell what they told."""
    first, second, third = split(max(traces.glob("store-*"), key=lambda path: path.stat().st_size), tmp_path, 3, 6)
    (violation, *_) = verify_paths([first, third]).violations
    assert (violation.path, violation.rule) == (third, "numbering")
    assert verify_paths([second, third]).clean


def test_a_time_that_no_table_can_hold_ends_nothing(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(next(traces.glob("store-*")))
    at = max(range(len(frames) - 1), key=lambda at: len(frames[at]))
    frames[at][-2]["t"] = 1 << 70
    report = verify_file(put_together(tmp_path / "late.sct", frames))
    assert (frames[at][-2]["n"], "schema") in [(one.record, one.rule) for one in report.violations]


def test_progress_is_told_of_all_files(traces: Path) -> None:
    told: list[int] = []
    assert verify_paths(sorted(traces.iterdir()), told.append).records == sum(told)
