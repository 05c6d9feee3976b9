"""Runs of `make bench` that fail or end: what was measured is printed and kept."""

import json
from pathlib import Path

import pytest

from tools.bench import __main__ as program
from tools.bench import command_line
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
