"""`stablecast verify`: what it prints and how it ends."""

import json
from pathlib import Path

import pytest

from stablecast.trace.command import run_verify
from tests.adapters.trace.traced import put_together, take_apart


@pytest.fixture
def corrupted(traces: Path, tmp_path: Path) -> Path:
    """A trace with a wrong effect in its first record, without its end, and with a gap that it admits."""
    frames = take_apart(next(traces.glob("source-*")))
    lines = next(lines for lines in frames if len(lines) > 2)
    lines[1]["out"] = []
    del frames[-1]
    frames[0][0]["gap"] = frames[0][0]["first"] = 3
    return put_together(tmp_path / "corrupted.sct", frames)


@pytest.fixture
def truncated(traces: Path, tmp_path: Path) -> Path:
    """A trace without its last byte."""
    path = tmp_path / "truncated.sct"
    path.write_bytes(next(traces.glob("store-*")).read_bytes()[:-1])
    return path


def test_clean_traces_end_with_0(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = sorted(traces.iterdir())
    assert run_verify(paths, as_json=False) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert len(lines) == len(paths) + 1
    assert all(line.startswith(f"{path}: clean: ") for path, line in zip(paths, lines, strict=False))
    assert lines[-1].endswith(f" records in {len(paths)} files, 0 violations")
    assert sum("not closed, its process was killed" in line for line in lines) == 3
    assert printed.err == ""


def test_json_is_one_document(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verify(sorted(traces.iterdir()), as_json=True) == 0
    printed = capsys.readouterr()
    value = json.loads(printed.out)
    assert value["violations"] == value["truncated"] == value["errors"] == []
    assert value["records"] == sum(file["records"] for file in value["files"]) > 400
    assert printed.err == ""


def test_violations_end_with_1(corrupted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verify([corrupted], as_json=True) == 1
    value = json.loads(capsys.readouterr().out)
    violation = value["violations"][0]
    assert set(violation) == {"file", "record", "rule", "text", "expected", "found"}
    assert violation["file"] == str(corrupted)
    assert value["files"][0]["violations"] == len(value["violations"])
    assert run_verify([corrupted], as_json=False) == 1
    out = capsys.readouterr().out
    assert f"{corrupted}: VIOLATED: source 10.2.0.1:9000: " in out
    assert "3 dropped by the recorder" in out
    assert f"  {violation['rule']}: {violation['text']}" in out


def test_what_cannot_be_read_gets_one_sentence_and_ends_with_1(
    traces: Path, truncated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.sct"
    clean = next(traces.glob("source-*"))
    assert run_verify([truncated, missing, clean], as_json=True) == 1
    printed = capsys.readouterr()
    value = json.loads(printed.out)
    assert value["truncated"] == [str(truncated)]
    assert value["violations"] == []
    assert printed.err.splitlines() == value["errors"]
    assert [line.split(" ")[0] for line in value["errors"]] == [str(truncated), str(missing)]
    assert run_verify([truncated, missing], as_json=False) == 1
    printed = capsys.readouterr()
    assert f"{truncated}: unreadable: store " in printed.out
    assert f"{missing}: unreadable: 0 records" in printed.out
    assert len(printed.err.splitlines()) == 2
