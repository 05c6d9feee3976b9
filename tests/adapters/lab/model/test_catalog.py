"""Models on disk: what configurations say, and what is on record."""

from pathlib import Path

import pytest

from stablecast.lab.model import catalog
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.catalog import RecordedGraph
from stablecast.lab.model.graph import Digests

SOURCE = r"""\* EXPECT violates Small
\* What it is for.
\* And more.
SPECIFICATION Spec
INVARIANTS Small Large
PROPERTIES Ends
SYMMETRY Alike
CHECK_DEADLOCK FALSE
CONSTANTS
    Limit = 3  \* a comment
    Faults = {"a", "b"}
    Mutant = "none"
"""
DIGESTS = Digests(2, 1, (1, 1), "s", "t", "a")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models, one configuration each."""
    for name, config in (("One", "graph_one"), ("Two", "doc_two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{config}.cfg").write_text(SOURCE)
        (tmp_path / name / f"{name}.tla").write_text("module")
    (tmp_path / "graphs.json").write_text("{}")
    return tmp_path


def test_a_configuration_says_what_it_is(models: Path) -> None:
    one, two = catalog.configurations(models)
    assert [one.name, one.model, one.has_graph, two.name, two.has_graph] == [
        "One/graph_one",
        "One",
        True,
        "Two/doc_two",
        False,
    ]
    assert (one.expected, one.purpose) == ("violates Small", "What it is for. And more.")
    assert one.constants == {"Limit": 3, "Faults": frozenset({"a", "b"}), "Mutant": "none"}
    assert (one.invariants, one.properties) == (("Small", "Large"), ("Ends",))
    assert one.module == models / "One" / "MCOne.tla"
    assert sorted(one.hashes()) == ["One.tla", "graph_one.cfg"]


def test_configurations_are_found_by_either_name(models: Path) -> None:
    assert [one.name for one in catalog.configurations(models, ("One",))] == ["One/graph_one"]
    assert [one.name for one in catalog.configurations(models, ("Two/doc_two",))] == ["Two/doc_two"]
    with pytest.raises(ModelError, match="no model or configuration Three"):
        catalog.configurations(models, ("Three",))


def test_a_configuration_must_say_its_verdict(models: Path) -> None:
    (models / "One" / "graph_one.cfg").write_text("SPECIFICATION Spec\n")
    with pytest.raises(ModelError, match="must begin with its verdict"):
        catalog.configurations(models)


def test_a_configuration_may_say_little(models: Path) -> None:
    path = models / "One" / "graph_one.cfg"
    path.write_text("\\* EXPECT ok\nSPECIFICATION Spec\n")
    one = catalog.read(path)
    assert (one.constants, one.invariants, one.properties, one.purpose) == ({}, (), (), "")


def test_the_record_is_written_and_read(models: Path) -> None:
    known = {"One/graph_one": RecordedGraph({"One.tla": "x"}, {"Limit": "3"}, DIGESTS, "a checker")}
    catalog.save(models, known)
    assert catalog.load(models) == known
    assert '"depths": [1, 1]' in (models / "graphs.json").read_text()


@pytest.mark.parametrize("text", ["{", '{"a": {}}', '{"a": 1}', "[]"])
def test_a_broken_record_is_one_sentence(models: Path, text: str) -> None:
    (models / "graphs.json").write_text(text)
    with pytest.raises(ModelError, match="not a record of graphs"):
        catalog.load(models)


def test_the_models_are_found_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (catalog.folder() / "Registration").is_dir()
    inside = tmp_path / "checkout" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.setattr(catalog, "__file__", str(inside / "catalog.py"))
    monkeypatch.chdir(inside)
    with pytest.raises(ModelError, match="part of the source tree"):
        catalog.folder()
    models = tmp_path / "checkout" / "tla"
    models.mkdir()
    (models / "graphs.json").write_text("{}")
    assert catalog.folder() == models


def test_a_comment_changes_no_hash_and_a_statement_does() -> None:
    """A graph depends on statements only; a comment may be reworded without the checker."""
    module = "VARIABLE x\n\n(* the store\n   of (* one *) source *)\nInit == x = 0 \\* at first\n"
    reworded = "VARIABLE x\n(* a store *)\nInit == x = 0\n"
    assert catalog.statements(module) == catalog.statements(reworded) == "VARIABLE x\nInit == x = 0\n"
    assert catalog.statements(module.replace("x = 0", "x = 1")) != catalog.statements(module)
