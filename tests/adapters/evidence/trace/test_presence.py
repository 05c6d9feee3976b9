"""A verdict names who is missing, and what is there twice."""

import shutil
from pathlib import Path

import pytest

from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.presence import MAX_NAMED, absent, doubled
from stablecast.evidence.trace.trace_judge import verify_paths
from tests.adapters.evidence.trace.traced import TracedWorld, play, tapping


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    play(TracedWorld(wrap=tapping(tmp_path, kill=False)))
    return tmp_path


def noted(directory: Path) -> list[str]:
    summary = verify_paths(find([directory]))
    assert summary.as_json()["noted"] == summary.noted
    return summary.noted


def delete(directory: Path, pattern: str) -> None:
    for path in directory.glob(pattern):
        path.unlink()


def test_nothing_is_noted_if_all_are_there(traces: Path) -> None:
    assert noted(traces) == []


def test_a_store_without_a_trace_is_named_by_its_sources(traces: Path) -> None:
    delete(traces, "store-10.0.0.3*")
    assert noted(traces) == [
        "no trace of store 10.0.0.3:14567, which 2 sources of these traces name: add the traces of its host"
    ]


def test_sources_and_receivers_without_traces_are_named(traces: Path) -> None:
    delete(traces, "source*")
    delete(traces, "receiver*")
    sources, receivers = noted(traces)
    assert sources.startswith("no trace of 2 sources whose messages are there, by life: 0x100000000001, ")
    assert receivers.startswith("no trace of ")
    assert "10.0.0.1:14567/" in receivers


def test_a_trace_that_is_there_twice_is_named_also_if_one_is_cut(traces: Path) -> None:
    path = next(traces.glob("source*"))
    shutil.copy(path, traces / "copy.sct")
    [text] = noted(traces)
    assert f"{traces / 'copy.sct'}, {path} are the same trace of source 10.2.0.1:9000" in text
    (traces / "copy.sct").write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    assert noted(traces) == [text]


def test_what_is_named_is_bounded(traces: Path) -> None:
    path = next(traces.glob("source*"))
    for number in range(MAX_NAMED + 3):
        shutil.copy(path, traces / f"copy{number}.sct")
    [text] = noted(traces)
    assert text.count(".sct") == MAX_NAMED
    assert "and 4 more are the same" in text
    assert doubled([]) == []
    assert absent({kind: [] for kind in ("member", "held", "wrote", "delivered", "holds", "heard")}, []) == []
