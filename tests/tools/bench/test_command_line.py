"""Wrong command lines and failing runs of `make bench` and of trace verification: one sentence, and kept results."""

import errno
import json
import os
from pathlib import Path

import pytest

from tools.bench import __main__ as program
from tools.bench import command_line, synthetic_traces, trace_verification
from tools.bench.roles import BenchError
from tools.bench.scenario import Figures, Options, Scenario


def _scenario(name: str, *, fails: BaseException | None = None) -> Scenario:
    def system(_options: Options, _directory: Path) -> Figures:
        if fails is not None:
            raise fails
        return {"rate": 1.0}

    return Scenario(name, "about it", "", {"ours": system}, {"rate": "1/s"})


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the results file, with three scenarios: `good` is measured, `bad` fails and `stopped` is interrupted."""
    good, bad = _scenario("good"), _scenario("bad", fails=BenchError("the store died"))
    stopped = _scenario("stopped", fails=KeyboardInterrupt())
    known = {one.name: lambda _, one=one: one for one in (good, bad, stopped)}
    monkeypatch.setattr(program, "SCENARIOS", known)
    return tmp_path / "bench.json"


@pytest.mark.parametrize(("name", "end"), [("bad", "make bench: the store died"), ("stopped", 130)])
def test_results_before_a_failure_are_printed_and_kept(
    name: str, end: object, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["good", name, "--rounds", "1", "--output", str(output)])
    assert ended.value.code == end
    assert "good: about it" in capsys.readouterr().out
    found = json.loads(output.read_text(encoding="utf-8"))
    assert list(found["scenarios"]) == ["good"]
    assert found["asked"]["scenarios"] == ["good", name]
    assert not found["complete"]
    assert list(output.parent.iterdir()) == [output]


def test_a_complete_run_is_marked_complete(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.main(["good", "good", "--fast", "--json", "--output", str(output)])
    assert capsys.readouterr().out == output.read_text(encoding="utf-8")
    found = json.loads(output.read_text(encoding="utf-8"))
    assert found["complete"]
    assert (found["asked"]["fast"], found["asked"]["sources"], found["rounds"]) == (True, command_line.FAST_SOURCES, 1)


def test_a_pipe_as_output_is_not_replaced(output: Path) -> None:
    os.mkfifo(output)
    reading = os.open(output, os.O_RDONLY | os.O_NONBLOCK)
    program.main(["good", "--rounds", "1", "--output", str(output)])
    assert output.is_fifo()
    assert os.read(reading, 1 << 16).count(b'"complete"') == 2, "after the scenario, and at the end"
    os.close(reading)


def test_a_full_disk_is_reported_with_its_directory(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^make bench: /dev has no room left \(.*\): free some, or name another"):
        program.main(["good", "--rounds", "1", "--output", "/dev/full"])
    assert "good: about it" in capsys.readouterr().out, "it was measured"


def test_a_failure_on_a_nearly_full_disk_is_reported_as_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BenchError, match=f"{tmp_path} has no room left"), command_line.disk_space_errors(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(command_line, "SCANT", 0)
    with pytest.raises(BenchError, match=r"^a store died$"), command_line.disk_space_errors(tmp_path):
        raise BenchError("a store died")
    monkeypatch.setattr(command_line, "SCANT", 1 << 62)
    with (
        pytest.raises(BenchError, match=r"has no room left \(the last line\)"),
        command_line.disk_space_errors(tmp_path),
    ):
        raise BenchError("a store died:\nthe last line\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["thoughput"], "there is no scenario thoughput: choose from good, "),
        (["--rounds", "0"], "argument --rounds: 0 is out of bounds: give at least 1"),
        (["--messages", "999"], "argument --messages: 999 is out of bounds: give at least 1000"),
        (["--size", "0"], "argument --size: 0 is out of bounds: give 8 to 8000"),
        (["--flight", "many"], "argument --flight: 'many' is not a whole number: give at least 1"),
        (["--directory", "/nowhere"], "argument --directory: the directory /nowhere does not exist: make it, or name"),
        (["--output", "/nowhere/x"], "argument --output: the directory /nowhere does not exist: make it, or name"),
        (["--output", "/"], "argument --output: / is a directory: name a file"),
        (["--peers", "/"], "argument --peers: / has no run_all.py: name the folder of a harness"),
    ],
)
def test_a_wrong_argument_is_reported_in_one_sentence(
    arguments: list[str], why: str, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(arguments)
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert printed.startswith(f"make bench: {why}")
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--records", "0", "--stream", "0", "--processes", "0"], "there is nothing to measure"),
        (["--records", "-1"], "argument --records: -1 is out of bounds: give at least 0"),
        (["--directory", "/nowhere"], "argument --directory: the directory /nowhere does not exist"),
        (["--one", "/nowhere", "here"], "the directory /nowhere does not exist: name one with traces"),
        (["--rules", "/", "0"], "argument --rules: '0' is not a number of records: give at least 1"),
    ],
)
def test_a_wrong_argument_about_traces_is_reported_in_one_sentence(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        trace_verification.main(arguments)
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert printed.startswith(f"trace_verification: {why}")
    assert printed.count("\n") == 1


def test_a_directory_without_traces_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^trace_verification: there are no traces"):
        trace_verification.main(["--one", str(tmp_path), trace_verification.HERE])


def test_incomplete_traces_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path, *_: int) -> int:
        folder.mkdir()
        raise BenchError("the trace ends here")

    monkeypatch.setattr(synthetic_traces, "write", full)
    monkeypatch.setattr(command_line, "SCANT", 0)
    with pytest.raises(SystemExit, match=r"^trace_verification: the trace ends here$"):
        trace_verification.main(["--directory", str(tmp_path)])
    assert not list(tmp_path.iterdir())
