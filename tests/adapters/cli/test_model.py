"""`stablecast model` as people use it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stablecast.cli.model import app
from stablecast.evidence.trace.converter import Json
from stablecast.lab.model import catalog, command, equal
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.graph import Graph
from stablecast.lab.model.views import VIEWS
from tests.adapters.lab.model import small
from tests.adapters.lab.model.checker import CLEAN, install
from tests.adapters.lab.model.conftest import small_models
from tests.adapters.lab.model.views.conftest import traced
from tests.adapters.lab.model.views.trace_edits import edited, having

__all__ = ["small_models", "traced"]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checker that agrees with the world that counts to 1."""
    return install(tmp_path, monkeypatch, CLEAN, small.dump(1))


def test_models_are_listed(small_models: Path, checker: Path) -> None:
    assert run("list", "--models", small_models).output.splitlines() == [
        "Small/graph_four: It counts to 4. (ok)",
        "Small/graph_one: It counts to 1. (ok)",
    ]
    run("equal", "--models", small_models, "--jar", checker, "--record", "Small/graph_one")
    assert "It counts to 1. (ok, 2 states, 2 edges)" in run("list", "--models", small_models).output
    (four, one) = json.loads(run("list", "--models", small_models, "--json").output)["configurations"]
    assert (four["nodes"], one["nodes"], one["expected"]) == (None, 2, "ok")


def test_the_real_models_are_listed_by_default() -> None:
    assert "Registration/graph_one" in run("list").output


def test_verdicts_are_compared(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("check", "--models", small_models, "Small/graph_one", "--jar")
    right = run(*words, install(tmp_path, monkeypatch, CLEAN))
    assert (right.exit_code, right.stdout) == (0, "Small/graph_one: ok\n")
    jar = install(tmp_path, monkeypatch, "Invariant Small is violated")
    wrong = run(*words, jar)
    assert (wrong.exit_code, wrong.stdout) == (1, "Small/graph_one: violates Small, EXPECTED ok\n")
    assert "Invariant Small is violated" in wrong.stderr
    assert json.loads(run(*words, jar, "--json").stdout)["models"] == [
        {"name": "Small/graph_one", "outcome": "violates Small", "expected": "ok"}
    ]


BROKEN = r"""Error: Invariant Small is violated.
State 1: <Initial predicate>
/\ at = 0
State 2: <Up(1) line 1>
/\ at = 2
"""


def test_a_counterexample_is_told(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("check", "--models", small_models, "Small/graph_one", "--jar")
    done = run(*words, install(tmp_path, monkeypatch, f"Progress(3) at now: 7 states\n{BROKEN}"))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "Small/graph_one: violates Small, EXPECTED ok",
        "Small/graph_one: a run that breaks Small",
        "   1  Up(1)",
        "      at: is 2 (was 0)",
    ]
    told = json.loads(run(*words, tmp_path / "checker.jar", "--json").stdout)["models"][0]
    assert [moment["action"] for moment in told["counterexample"]["moments"]] == ["", "Up(1)"]


@pytest.mark.rows("P-302", "P-306", "P-402")
def test_traces_are_judged_by_rules_and_models(traced: Path) -> None:
    done = run("trace", traced)
    assert done.exit_code == 0
    assert (
        "Stability.source: 2 traces, 72 changes are steps of the model, 0 out of bounds, 0 neither; 3 of 4"
        in done.stdout
    )
    assert done.stdout.splitlines()[-1].endswith(" records, 0 violations of the rules")
    told = json.loads(run("trace", traced, "--model", "Stability", "--json").stdout)
    assert [view["view"] for view in told["views"]] == ["Stability.source", "Stability.store"]
    assert told["violations"] == []


@pytest.mark.rows("P-302")
def test_a_stranger_is_told_and_fails(traced: Path, tmp_path: Path) -> None:
    def skip(records: list[Json]) -> None:
        sent = next(record["in"] for record in records if record["in"]["_"] == "Sent")
        sent["first"] += 1

    done = run("trace", edited(having(traced, "source", "Sent"), tmp_path, skip))
    assert done.exit_code == 1
    assert "from (later) to (sent, held by 0 of 3) is no step of the model by Send" in done.stdout


def test_what_cannot_be_judged_is_one_sentence(tmp_path: Path) -> None:
    none = run("trace", tmp_path)
    assert (none.exit_code, none.stderr) == (
        2,
        f"stablecast: there are no traces (*.sct) in the directory {tmp_path}: name the one recorded to\n",
    )
    other = run("trace", tmp_path, "--model", "Rpp")
    assert (other.exit_code, other.stdout) == (2, "")
    assert "traces are not compared with Rpp; choose one of Recovery, Registration, Stability" in other.stderr


def test_views_are_named_and_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Stability.source (groups of 3, quorum): 4 steps" in run("views").stdout
    told = json.loads(run("views", "--json").stdout)["views"]
    assert {entry["view"] for entry in told} == {view.name for view in VIEWS}
    models = tmp_path / "tla"
    (models / "Stability").mkdir(parents=True)
    real = catalog.folder()
    for path in (*(real / "Stability").glob("graph_small.*"), real / "Stability" / "Stability.tla"):
        shutil.copy(path, models / "Stability")
    shutil.copy(real / "graphs.json", models)
    made = run("views", "--models", models, "--record")
    assert "Stability.source (groups of 1, quorum): 2 steps" in made.stdout
    assert run("views", "--models", models).stdout == made.stdout


def test_without_a_checker_it_is_said_how_to_get_one(
    small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    with pytest.raises(ModelError, match=r"tla2tools\.jar"):
        run("check", "--models", small_models)
    with pytest.raises(ModelError, match="there is no checker at"):
        run("equal", "--models", small_models, "--record", "--jar", tmp_path / "gone.jar")


def test_graphs_are_written(small_models: Path, tmp_path: Path, checker: Path) -> None:
    core, model = tmp_path / "core.gz", tmp_path / "model.gz"
    said = run("graph", "Small/graph_one", "--models", small_models, "-o", core)
    assert "2 states, 2 edges" in said.output
    run("graph", "Small/graph_one", "--models", small_models, "-o", model, "--jar", checker)
    assert Graph.read(core).digests() == Graph.read(model).digests()
    with pytest.raises(ModelError, match="has several configurations"):
        run("graph", "Small", "--models", small_models, "-o", core)


def test_equal_graphs_exit_with_0(small_models: Path, checker: Path) -> None:
    words = ("equal", "Small/graph_one", "--models", small_models, "--jobs", "1")
    assert run(*words, "--jar", checker, "--record").exit_code == 0
    said = run(*words)
    assert (said.exit_code, said.output) == (0, "Small/graph_one: equal, 2 states, 2 edges\n")
    (line,) = run(*words, "--json").output.splitlines()
    result = {"name": "Small/graph_one", "nodes": 2, "edges": 2, "equal": True, "difference": None}
    assert json.loads(line) == result


def test_each_result_is_a_line_of_json_as_soon_as_it_is_there(
    small_models: Path, checker: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("equal", "Small/graph_one", "--models", small_models, "--jobs", "1", "--jar", checker, "--record")
    printed: list[int] = []

    def results(*_: object) -> Iterator[equal.Comparison]:
        for number in range(3):
            yield equal.Comparison(str(number), 1, 1, True)
            printed.append(capsys.readouterr().out.count("\n"))

    monkeypatch.setattr(equal, "compare_all", results)
    assert command.compare([], small_models, None, 1, False, as_json=True) == 0
    assert printed == [1, 1, 1]


def test_a_difference_is_told(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = install(tmp_path, monkeypatch, CLEAN, small.dump(1, wrong=True))
    said = run("equal", "Small/graph_one", "--models", small_models, "--jobs", "1", "--jar", jar)
    assert said.exit_code == 1
    assert said.output.splitlines() == [
        "Small/graph_one: DIFFERENT, 2 states, 2 edges",
        "  after Up(1)",
        '  in ["fn",["at",1]]',
        '  only the model: Reset -> ["fn",["at",1]]',
        '  only the core: Reset -> ["fn",["at",0]]',
    ]


def test_other_reasons_are_told(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("equal", "Small/graph_one", "--models", small_models, "--jobs", "1")
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    assert "nothing is on record" in run(*words).output
