"""Two runs are the same until they part."""

from pathlib import Path

from stablecast.evidence.trace.tools.analysis import diff
from tests.adapters.evidence.trace.traced import TracedWorld, first_trace, play, put_together, take_apart, tapping


def test_the_same_run_again_does_not_differ(traces: Path, tmp_path: Path) -> None:
    play(TracedWorld(wrap=tapping(tmp_path)))
    assert diff(traces, tmp_path) == diff(traces, traces, times=True) == []


def test_the_tenth_trace_of_a_process_comes_after_its_ninth(traces: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder, first in ((ours, 1), (theirs, 9)):
        folder.mkdir()
        for count, path in enumerate(sorted(traces.glob("*.sct"))[:2]):
            put_together(folder / f"run-{first + count}.sct", take_apart(path))
    assert diff(ours, theirs) == []


def test_the_first_difference_of_each_endpoint_is_told(traces: Path, tmp_path: Path) -> None:
    path = first_trace(traces, "source")
    frames = take_apart(path)
    longest = max(frames, key=len)
    number = longest[5]["n"]
    longest[5]["in"] = {"_": "Tick"}
    longest[7]["out"] = []
    (found,) = diff(path, put_together(tmp_path / path.name, frames))
    assert (found.role, found.number) == ("source", number)
    assert found.right is not None
    assert found.right.event == {"_": "Tick"}
    told = found.as_json()
    assert told["record"] == number


def test_a_trace_that_ends_before_differs_at_its_end(traces: Path, tmp_path: Path) -> None:
    path = first_trace(traces, "source")
    frames = take_apart(path)
    last = frames[-1].pop(-2)
    (found,) = diff(put_together(tmp_path / path.name, frames), path)
    assert (found.left, found.number) == (None, last["n"])
    assert found.as_json()["left"] is None


def test_a_trace_that_is_missing_differs_from_the_start(traces: Path, tmp_path: Path) -> None:
    for path in sorted(traces.glob("*.sct"))[1:]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    missing = [one for one in diff(traces, tmp_path) if one.right is None and one.number == 0]
    assert missing


def test_times_count_only_if_asked_for(traces: Path, tmp_path: Path) -> None:
    path = first_trace(traces, "source")
    frames = take_apart(path)
    changed = max(frames, key=len)[3]
    changed["t"] += 1
    later = put_together(tmp_path / path.name, frames)
    assert diff(path, later) == []
    assert [one.number for one in diff(path, later, times=True)] == [changed["n"]]
