"""`stablecast trace` as people use it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stablecast.cli.trace import app
from stablecast.evidence.trace.tools import command
from tests.adapters.evidence.trace.traced import TracedWorld, first_trace, play, put_together, take_apart, tapping


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("told")
    play(TracedWorld(wrap=tapping(directory, kill=False)))
    return directory


def run(*words: object, typed: str = "") -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], input=typed, catch_exceptions=False)


@pytest.mark.rows("P-711", "M-013")
def test_records_are_dumped(traces: Path) -> None:
    lines = run("dump", traces, "--endpoint", "source", "--kind", "Sent", "--json").output.splitlines()
    assert {json.loads(line)["in"]["_"] for line in lines} == {"Sent"}
    assert "<- Sent(first=0" in run("dump", traces, "--number", 0, "--since", 0, "--until", 1e6).output


def test_runs_are_compared(traces: Path, tmp_path: Path) -> None:
    path = first_trace(traces, "source")
    assert run("diff", path, path).output == "no difference\n"
    frames = take_apart(path)
    del frames[-1][-2]
    other = put_together(tmp_path / path.name, frames)
    done = run("diff", path, other)
    assert done.exit_code == 1
    assert "right: ends before" in done.output
    assert len(json.loads(run("diff", path, other, "--json").output)["differences"]) == 1


def test_runs_are_analyzed(traces: Path) -> None:
    assert "send to stable: p50" in run("analyze", traces).output
    assert len(json.loads(run("analyze", traces, "--json").output)["traces"]) == len(list(traces.glob("*.sct")))


@pytest.mark.rows("P-711", "M-013")
def test_runs_are_pruned(traces: Path, tmp_path: Path) -> None:
    assert "frames" in run("prune", traces, "-o", tmp_path / "a", "--endpoint", "source").output
    told = json.loads(run("prune", traces, "-o", tmp_path / "b", "--endpoint", "source", "--json").output)
    assert 0 < told["kept"] < told["frames"]


def test_messages_are_followed(traces: Path) -> None:
    assert "the rules of the groups are met: stable" in run("why", 3, traces).output


def test_time_travel_takes_a_script(traces: Path) -> None:
    assert run("open", traces, typed="next\nstate config\nquit\n").exit_code == 0
    assert run("open", traces, typed="fly\n").exit_code == 1


def test_time_travel_asks_people(
    traces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["fly", "next"])

    def ask(prompt: str) -> str:
        assert prompt == command.PROMPT
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert command.run_open([traces]) == 0
    assert "'help' shows what may be typed\n" in capsys.readouterr().out
