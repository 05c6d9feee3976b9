"""The core's graph against the record and against the checker."""

from pathlib import Path

import attrs
import pytest

from stablecast.lab.model import catalog, equal
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.catalog import Configuration
from tests.adapters.lab.model import small
from tests.adapters.lab.model.checker import CLEAN, VERSION, install


@pytest.fixture
def one(small_models: Path) -> Configuration:
    """It counts to 1."""
    return catalog.configurations(small_models, ("Small/graph_one",))[0]


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checker that agrees with the world that counts to 1."""
    return install(tmp_path, monkeypatch, CLEAN, small.dump(1))


def test_what_is_recorded_is_equal(one: Configuration, small_models: Path, jar: Path) -> None:
    assert equal.record(one, small_models, jar).equal
    known = catalog.load(small_models)[one.name]
    assert (known.checker, known.constants, known.hashes) == (VERSION, {"Limit": "1"}, one.hashes())
    result = equal.compare(one, known)
    assert attrs.asdict(result) == {"name": one.name, "nodes": 2, "edges": 2, "equal": True, "difference": None}


def test_with_the_checker_no_record_is_needed(one: Configuration, jar: Path) -> None:
    assert equal.compare(one, None, jar).equal


def test_nothing_on_record_is_said(one: Configuration) -> None:
    result = equal.compare(one, None)
    assert not result.equal
    assert "nothing is on record" in str(result.difference)


def test_a_changed_model_needs_a_new_record(one: Configuration, small_models: Path, jar: Path) -> None:
    equal.record(one, small_models, jar)
    one.module.write_text(small.MODEL + "changed")
    result = equal.compare(one, catalog.load(small_models)[one.name])
    assert "changed since its graph was recorded" in str(result.difference)


def test_a_difference_is_told_where_the_graph_is_kept(
    one: Configuration, small_models: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal.record(one, small_models, jar)
    known = catalog.load(small_models)[one.name]
    monkeypatch.setattr(small.SmallWorld, "do", lambda world, action: setattr(world, "at", 1))
    result = equal.compare(one, known)
    assert isinstance(result.difference, dict)
    assert result.difference["path"] == ("Up(1)",)
    assert result.difference["only_core"] == (("Reset", '["fn",["at",1]]'),)
    equal.kept_path(one).unlink()
    assert equal.compare(one, known).difference == "the digests differ"


def test_what_differs_is_not_recorded(
    one: Configuration, small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = install(tmp_path, monkeypatch, CLEAN, small.dump(1, wrong=True))
    assert not equal.record(one, small_models, jar).equal
    assert catalog.load(small_models) == {}


def test_a_large_graph_is_not_kept(
    one: Configuration, small_models: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equal, "MAX_KEPT_BYTES", 10)
    assert equal.record(one, small_models, jar).equal
    assert not equal.kept_path(one).exists()


def test_a_model_without_a_world_is_one_sentence(one: Configuration) -> None:
    with pytest.raises(ModelError, match="no world drives the core for Nowhere"):
        equal.core_graph(attrs.evolve(one, path=Path("tla/Nowhere/graph_one.cfg")))


def test_many_are_compared_one_by_one(small_models: Path) -> None:
    both = catalog.configurations(small_models)
    results = list(equal.compare_all(both, small_models, None, jobs=1))
    assert [(result.name, result.nodes) for result in results] == [("Small/graph_four", 5), ("Small/graph_one", 2)]


def test_many_are_compared_in_several_processes() -> None:
    models = catalog.folder()
    smallest = catalog.configurations(models, ("Registration/doc_no_lease",))
    tiny = attrs.evolve(
        smallest[0], sources={**smallest[0].sources, "Clients": "1", "Faults": "{}", "Lease": "1", "Lifetime": "0"}
    )
    results = list(equal.compare_all([tiny, tiny], models, None, jobs=2))
    assert [result.equal for result in results] == [False, False]
    assert results[0] == results[1]
