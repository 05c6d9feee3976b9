"""Traces in several files, and numbers that no table can hold."""

from itertools import pairwise
from pathlib import Path

from stablecast.evidence.trace.container import Growing, offsets
from stablecast.evidence.trace.file_names import find, part_path, traces_in
from stablecast.evidence.trace.frames import first_line
from stablecast.evidence.trace.trace_judge import verify_file, verify_paths
from stablecast.evidence.verification.traces import _sentence
from tests.adapters.evidence.trace.traced import first_trace, put_together, read_frames, take_apart


def split(source: Path, into: Path, *ends: int) -> list[Path]:
    """Write the trace in parts that end before these frames."""
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
    frames = take_apart(first_trace(traces, "store"))
    at = max(range(len(frames) - 1), key=lambda at: len(frames[at]))
    frames[at][-2]["t"] = 1 << 70
    report = verify_file(put_together(tmp_path / "late.sct", frames))
    assert (frames[at][-2]["n"], "schema") in [(one.record, one.rule) for one in report.violations]


def test_progress_is_told_of_all_files(traces: Path) -> None:
    told: list[int] = []
    assert verify_paths(sorted(traces.iterdir()), told.append).records == sum(told)


def test_the_unfinished_last_frame_of_a_killed_process_is_judged(torn: Path, tmp_path: Path) -> None:
    unfinished = [path for path in traces_in(torn) if not [*read_frames(path)][-1].foot.ends_known]
    assert unfinished
    summary = verify_paths(find([torn]))
    assert summary.clean
    for report in summary.files:
        frames = list(read_frames(report.path))
        assert report.closed == (report.path not in unfinished)
        assert report.records == sum(frame.count for frame in frames)
    for path in unfinished:
        last = [*read_frames(path)][-1]
        assert last.count
        forged = tmp_path / path.name
        wrong = last.body.replace(b'"t":', b'"t":9', 1)
        forged.write_bytes(path.read_bytes()[: offsets(path)[-1]])
        with forged.open("r+b") as file:
            Growing(file.fileno(), forged.stat().st_size).add(first_line(last.head) + wrong)
        assert not verify_paths([forged]).clean


def test_records_in_parts_that_are_gone_are_counted(whole_world: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(whole_world, "store"))
    path = put_together(part_path(tmp_path / "rolled.sct", 3), frames[2:])
    (report,) = verify_paths([path]).files
    assert report.clean
    assert report.missing == frames[2][0]["first"] > 0
    assert f"{report.missing:,} before them in parts that are gone" in _sentence(report)
