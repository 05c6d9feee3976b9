"""`stablecast verify`: what it prints and how it ends."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import FileReport, VerificationSummary
from stablecast.evidence.verification import traces as command
from stablecast.evidence.verification.traces import EVERY_CORE, UNREADABLE, VIOLATED, VerificationRequest, run_verify
from tests.adapters.evidence.trace.traced import FIRST_LIFE, first_trace, put_together, take_apart

JSON = VerificationRequest(as_json=True)


@pytest.fixture
def corrupted(traces: Path, tmp_path: Path) -> Path:
    """Return a trace with a wrong first effect, without its end, and with an announced gap."""
    frames = take_apart(first_trace(traces, "source"))
    lines = next(lines for lines in frames if len(lines) > 2)
    lines[1]["out"] = []
    del frames[-1]
    frames[0][0]["gap"] = frames[0][0]["first"] = 3
    return put_together(tmp_path / "corrupted.sct", frames)


@pytest.fixture
def truncated(traces: Path, tmp_path: Path) -> Path:
    """Return a trace without its last byte."""
    path = tmp_path / "truncated.sct"
    path.write_bytes(first_trace(traces, "store").read_bytes()[:-1])
    return path


def test_clean_traces_end_with_0(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = sorted(traces.iterdir())
    assert run_verify(paths) == 0
    printed = capsys.readouterr()
    lines = [line for line in printed.out.splitlines() if "cannot be decided" not in line]
    assert len(lines) == len(paths) + 1
    assert all(line.startswith(f"{path}: clean: ") for path, line in zip(paths, lines, strict=False))
    assert lines[-1].endswith(f" records in {len(paths)} files, 0 violations")
    assert sum("not closed: its process was killed, or still runs" in line for line in lines) == 3
    assert printed.err == ""


def test_json_is_one_document(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verify([traces], JSON) == 0
    printed = capsys.readouterr()
    value = json.loads(printed.out)
    assert value["violations"] == value["truncated"] == value["errors"] == []
    assert value["records"] == sum(file["records"] for file in value["files"]) > 400
    assert printed.err == ""


def test_violations_end_with_1(corrupted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verify([corrupted], JSON) == VIOLATED
    value = json.loads(capsys.readouterr().out)
    violation = value["violations"][0]
    assert set(violation) == {"file", "record", "rule", "text", "expected", "found"}
    assert violation["file"] == str(corrupted)
    assert value["files"][0]["violations"] == len(value["violations"])
    assert run_verify([corrupted]) == VIOLATED
    out = capsys.readouterr().out
    assert f"{corrupted}: VIOLATED: source 10.2.0.1:9000: " in out
    assert "3 dropped by the recorder" in out
    assert f"  {violation['rule']}: {violation['text']}" in out


def test_an_unreadable_file_gets_one_sentence_and_status_2(
    traces: Path, truncated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.sct"
    # The first life: a world gives all lives of a source one context, so the second one alone looks complete.
    clean = first_trace(traces, "source")
    assert run_verify([truncated, missing, clean], JSON) == UNREADABLE
    printed = capsys.readouterr()
    value = json.loads(printed.out)
    assert value["truncated"] == [str(truncated)]
    assert value["violations"] == []
    assert printed.err.splitlines() == value["errors"]
    assert [line.split(" ")[0] for line in value["errors"]] == [str(truncated), str(missing)]
    assert run_verify([truncated, missing]) == UNREADABLE
    printed = capsys.readouterr()
    assert f"{truncated}: unreadable: store " in printed.out
    assert f"{missing}: unreadable: 0 records\n" in printed.out
    assert len(printed.err.splitlines()) == 2
    assert "was killed" not in printed.out, "nobody knows of a trace whose end is missing"
    assert run_verify([missing]) == UNREADABLE
    assert capsys.readouterr().out.splitlines()[-1] == "0 records in 1 file, 0 violations"


def test_a_directory_without_traces_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verify([tmp_path]) == UNREADABLE
    assert (
        capsys.readouterr().err
        == f"stablecast: there are no traces (*.sct) in the directory {tmp_path}: name the one recorded to\n"
    )


def test_a_page_and_a_table_are_written(corrupted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = VerificationRequest(report=tmp_path / "out.html", parquet=tmp_path / "table")
    assert run_verify([corrupted], wanted) == VIOLATED
    assert "<svg" in (tmp_path / "out.html").read_text()
    assert (tmp_path / "table" / "violations.parquet").stat().st_size > 0
    capsys.readouterr()


def test_undecided_questions_are_printed_briefly(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = first_trace(traces, "source")
    assert run_verify([source]) == 0, "an undecided question is no violation"
    out = capsys.readouterr().out
    assert f"S1 cannot be decided for numbers that are stable (life {FIRST_LIFE:#x})" in out
    lines = list(command._lines(VerificationSummary([FileReport(source)], [f"number {number}" for number in range(9)])))
    assert "and 4 more that cannot be decided" in lines


@pytest.fixture
def on_spark(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the masters that were asked, instead of any Spark."""
    asked: list[str] = []

    def judge(files: list[Path], master: str, wanted: VerificationRequest) -> tuple[VerificationSummary, list[object]]:
        asked.append(master)
        return VerificationSummary([FileReport(path) for path in files]), []

    monkeypatch.setattr(command, "_judge_on_spark", judge)
    return asked


def test_spark_is_for_much_and_for_whoever_asks(
    traces: Path, on_spark: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_verify([traces]) == 0
    assert on_spark == []
    assert run_verify([traces], VerificationRequest(master="spark://there:7077")) == 0
    assert on_spark == ["spark://there:7077"]
    monkeypatch.setattr(command, "SPARK_BYTES", 1)
    monkeypatch.setattr("stablecast.evidence.spark.spark_session.check_java", lambda: None)
    assert run_verify([traces]) == 0
    assert on_spark == ["spark://there:7077", EVERY_CORE]


def test_without_spark_much_is_judged_here(
    traces: Path, on_spark: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "SPARK_BYTES", 1)
    monkeypatch.setitem(sys.modules, "stablecast.evidence.spark.spark_session", None)
    assert run_verify([first_trace(traces, "receiver")]) == 0
    assert on_spark == []


def test_asking_for_a_spark_that_is_not_installed_is_one_sentence(
    traces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "stablecast.evidence.spark", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert run_verify([traces], VerificationRequest(master="local")) == UNREADABLE
    assert "pip install 'stablecast[spark]'" in capsys.readouterr().err


def test_spark_is_asked_for_what_is_wanted(traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def verify_on(session: str, files: list[Path], *, timeline: bool, show: object) -> object:
        assert callable(show)
        asked.extend((session, files, timeline))
        return SimpleNamespace(summary=VerificationSummary(), points=[])

    monkeypatch.setattr("stablecast.evidence.spark.connect", lambda master: f"session at {master}")
    monkeypatch.setattr("stablecast.evidence.spark.verify_on", verify_on)
    assert run_verify([traces], VerificationRequest(master="local", report=tmp_path / "out.html")) == 0
    assert asked == ["session at local", find([traces]), True]
