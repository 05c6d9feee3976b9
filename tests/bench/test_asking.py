"""What `make bench` and the judging of traces say when they are asked for what cannot be, and what a run leaves."""

import errno
import json
import os
from pathlib import Path

import pytest

from tests.bench import __main__ as program
from tests.bench import asking, hot, judging
from tests.bench.roles import BenchError
from tests.bench.scenario import Figures, Options, Scenario


def _scenario(name: str, *, fails: BaseException | None = None) -> Scenario:
    def system(_options: Options, _directory: Path) -> Figures:
        if fails is not None:
            raise fails
        return {"rate": 1.0}

    return Scenario(name, "about it", "", {"ours": system}, {"rate": "1/s"})


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results go; `good` is measured, `bad` fails and `stopped` is interrupted."""
    good, bad = _scenario("good"), _scenario("bad", fails=BenchError("the store died"))
    stopped = _scenario("stopped", fails=KeyboardInterrupt())
    known = {one.name: lambda _, one=one: one for one in (good, bad, stopped)}
    monkeypatch.setattr(program, "SCENARIOS", known)
    return tmp_path / "bench.json"


@pytest.mark.parametrize(("name", "end"), [("bad", "make bench: the store died"), ("stopped", 130)])
def test_what_was_measured_before_a_run_ended_is_shown_and_kept(
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


def test_a_run_that_came_to_its_end_says_so(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.main(["good", "good", "--fast", "--json", "--output", str(output)])
    assert capsys.readouterr().out == output.read_text(encoding="utf-8")
    found = json.loads(output.read_text(encoding="utf-8"))
    assert found["complete"]
    assert (found["asked"]["fast"], found["asked"]["sources"], found["rounds"]) == (True, asking.FAST_SOURCES, 1)


def test_a_device_stays_one(output: Path) -> None:
    os.mkfifo(output)
    reading = os.open(output, os.O_RDONLY | os.O_NONBLOCK)
    program.main(["good", "--rounds", "1", "--output", str(output)])
    assert output.is_fifo()
    assert os.read(reading, 1 << 16).count(b'"complete"') == 2, "after the scenario, and at the end"
    os.close(reading)


def test_a_full_disk_is_told_of_with_its_place(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^make bench: /dev has no room left \(.*\): make some, or name another"):
        program.main(["good", "--rounds", "1", "--output", "/dev/full"])
    assert "good: about it" in capsys.readouterr().out, "it was measured"


def test_what_fails_where_hardly_any_room_is_fails_because_of_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BenchError, match=f"{tmp_path} has no room left"), asking.room(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(asking, "SCANT", 0)
    with pytest.raises(BenchError, match=r"^a store died$"), asking.room(tmp_path):
        raise BenchError("a store died")
    monkeypatch.setattr(asking, "SCANT", 1 << 62)
    with pytest.raises(BenchError, match=r"has no room left \(the last line\)"), asking.room(tmp_path):
        raise BenchError("a store died:\nthe last line\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["thoughput"], "there is no scenario thoughput: choose of good, "),
        (["--rounds", "0"], "argument --rounds: 0 is out of bounds: give at least 1"),
        (["--messages", "999"], "argument --messages: 999 is out of bounds: give at least 1000"),
        (["--size", "0"], "argument --size: 0 is out of bounds: give 8 to 8000"),
        (["--flight", "many"], "argument --flight: 'many' is no whole number: give at least 1"),
        (["--directory", "/nowhere"], "argument --directory: there is no directory /nowhere: make it, or name another"),
        (["--output", "/nowhere/x"], "argument --output: there is no directory /nowhere: make it, or name another"),
        (["--output", "/"], "argument --output: / is a directory: name a file"),
        (["--peers", "/"], "argument --peers: there is no run_all.py in /: name the folder of a harness"),
    ],
)
def test_a_wrong_question_is_answered_by_a_sentence(
    arguments: list[str], why: str, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(arguments)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(f"make bench: {why}")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--records", "0", "--stream", "0", "--processes", "0"], "nothing is asked for"),
        (["--records", "-1"], "argument --records: -1 is out of bounds: give at least 0"),
        (["--directory", "/nowhere"], "argument --directory: there is no directory /nowhere"),
        (["--one", "/nowhere", "here"], "there is no directory /nowhere: name one with traces"),
        (["--rules", "/", "0"], "argument --rules: '0' is no number of records: give at least 1"),
    ],
)
def test_so_is_one_about_traces(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        judging.main(arguments)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(f"judging: {why}")
    assert told.count("\n") == 1


def test_a_directory_without_traces_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^judging: there are no traces"):
        judging.main(["--one", str(tmp_path), judging.HERE])


def test_traces_that_could_not_be_written_are_not_left_to_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, *_: int) -> int:
        folder.mkdir()
        raise BenchError("the trace ends here")

    monkeypatch.setattr(hot, "write", full)
    monkeypatch.setattr(asking, "SCANT", 0)
    with pytest.raises(SystemExit, match=r"^judging: the trace ends here$"):
        judging.main(["--directory", str(tmp_path)])
    assert not list(tmp_path.iterdir())
