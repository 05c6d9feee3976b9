"""An unreadable file is one sentence that names it, in each tool."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.tools.command import run_analyze, run_diff, run_dump, run_prune, run_why
from stablecast.evidence.trace.tools.records import RecordFilter, TraceWindow
from stablecast.evidence.trace.tools.travel import TravelSession
from stablecast.evidence.whatif.replay import recordings
from tests.adapters.evidence.trace.traced import first_trace, put_together, take_apart


def travel(path: Path) -> None:
    """Open it, and look at each record: opening alone reads the index."""
    for trace in TravelSession.open([path]).traces:
        for number in range(trace.first, trace.count):
            trace.record(number)


TOOLS: dict[str, Callable[[Path], object]] = {
    "dump": lambda path: run_dump([path], RecordFilter(), False),
    "diff": lambda path: run_diff(path, path, False, False),
    "analyze": lambda path: run_analyze([path], False),
    "prune": lambda path: run_prune([path], path.parent / "pruned", TraceWindow(), False),
    "why": lambda path: run_why([path], 5),
    "open": travel,
    "whatif": lambda path: recordings([path]),
}


def older(path: Path, whole: Path) -> None:
    """Return a trace of an older release that this one continued."""
    frames = take_apart(whole)
    frames[1][0]["version"] = 1
    put_together(path, frames)


BAD: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "missing": (lambda path, _: None, "cannot be read: No such file or directory; correct the path"),
    "empty": (lambda path, _: path.write_bytes(b""), "is empty, it holds no trace: leave it out"),
    "foreign": (
        lambda path, _: path.write_bytes(b"# a configuration\n"),
        "is not a trace file: name what was recorded, *.sct",
    ),
    "cut": (
        lambda path, whole: path.write_bytes(whole.read_bytes()[:300]),
        "; copy it again from where it was recorded",
    ),
    "older": (older, "verify it with the release that wrote it"),
    "directory": (lambda path, _: path.mkdir(), "there are no traces (*.sct) in the directory"),
}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
@pytest.mark.parametrize(("spoil", "sentence"), BAD.values(), ids=BAD)
def test_an_unreadable_file_is_one_sentence(
    traces: Path, tmp_path: Path, tool: Callable[[Path], object], spoil: Callable[[Path, Path], object], sentence: str
) -> None:
    path = tmp_path / "it.sct"
    spoil(path, first_trace(traces, "source"))
    with pytest.raises(StablecastError) as caught:
        tool(path)
    text = str(caught.value)
    assert sentence in text
    assert str(path) in text
    assert "\n" not in text
