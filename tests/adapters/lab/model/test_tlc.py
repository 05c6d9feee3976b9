"""The output and the dump of the checker are understood or refused."""

from pathlib import Path

import pytest

from stablecast.lab.model import tlc
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.catalog import Configuration
from stablecast.lab.model.explorer import explore
from tests.adapters.lab.model.checker import CLEAN, VERSION, install
from tests.adapters.lab.model.small import SmallWorld, dump

SMALL = Configuration(Path("tla/Small/graph_small.cfg"), "ok", "", {}, (), ("Ends",))


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        (CLEAN, "ok"),
        ("Error: Invariant Small is violated.\n", "violates Small"),
        ("Error: Action property Rises is violated.\n", "violates Rises"),
        ("Error: Temporal property Rises was violated.\n", "violates Rises"),
        ("Error: Temporal properties were violated.\n", "violates Ends"),
    ],
)
def test_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, outcome: str) -> None:
    verdict = tlc.check(SMALL, install(tmp_path, monkeypatch, says))
    assert (verdict.outcome, verdict.output) == (outcome, says)
    assert verdict.version == (VERSION if says == CLEAN else "")


def test_no_verdict_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="the checker failed on Small/graph_small: out of memory"):
        tlc.check(SMALL, install(tmp_path, monkeypatch, "out of memory"))


def test_no_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError, match="Java does not run"):
        tlc.check(SMALL, tmp_path / "checker.jar")


def test_the_dump_of_a_world_is_its_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, version = tlc.graph(SMALL, install(tmp_path, monkeypatch, CLEAN, dump(3)))
    assert version == VERSION
    assert explore(SmallWorld(3), model=graph).difference is None
    assert graph.digests() == explore(SmallWorld(3)).graph.digests()


def test_a_graph_needs_the_expected_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="Small/graph_small violates Small, expected ok"):
        tlc.graph(SMALL, install(tmp_path, monkeypatch, "Invariant Small is violated"))


def test_values_over_several_lines_and_quotes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "graph.dot"
    path.write_text(
        r'1 [label="/\\ b = [k |-> \"x\",\n  l |-> <<>>]\n/\\ a = {}",style = filled]'
        "\n"
        r'2 [label="/\\ b = 1\n/\\ a = {}"]'
        "\n"
        r'1 -> 1 [label="Do(\"x\", 2)",color="black"];'
        "\n"
    )
    graph = tlc.read(path)
    assert graph.states == ['["fn",["a",["set"]],["b",["fn",["k","x"],["l",["seq"]]]]]', '["fn",["a",["set"]],["b",1]]']
    assert graph.edges == [[('Do("x",2)', 0)], []]


def test_a_dump_without_states_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.dot"
    path.write_text("strict digraph DiskGraph {\n}\n")
    with pytest.raises(ModelError, match="holds no state"):
        tlc.read(path)
