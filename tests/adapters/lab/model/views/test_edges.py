"""Steps are cut from graphs, kept, and found again; what is kept is of the graphs on record."""

import json
from pathlib import Path

import pytest

from stablecast.lab.model import catalog
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.views import VIEWS, edges
from stablecast.lab.model.views.edges import ModelStep, RecordedSteps, Seen, Steps

STEPS = Steps.of(
    [
        ModelStep("a", "Go", "b"),
        ModelStep("b", "Go", "c"),
        ModelStep("b", "Back", "a"),
        ModelStep("c", "Go", "c", "hello"),
    ]
)
FEW = {"Registration/graph_small", "Stability/graph_small", "Recovery/graph_small"}
MODELS = catalog.folder()


def seen(before: str, after: str, *actions: str, says: str = "") -> Seen:
    return Seen("it", before, frozenset(actions), after, says)


def test_a_record_is_a_step_or_several_if_it_may_be() -> None:
    assert STEPS.path(seen("a", "b", "Go"), 1) == [ModelStep("a", "Go", "b")]
    assert STEPS.path(seen("a", "c", "Go"), 1) is None
    assert STEPS.path(seen("a", "c", "Go"), 2) == [ModelStep("a", "Go", "b"), ModelStep("b", "Go", "c")]
    assert STEPS.path(seen("b", "a", "Go"), 4) is None
    assert STEPS.path(seen("b", "a", "Go", "Back"), 1) == [ModelStep("b", "Back", "a")]
    assert STEPS.path(seen("a", "b"), 4) is None


def test_what_is_said_must_be_said_by_one_step() -> None:
    assert STEPS.path(seen("c", "c", "Go", says="hello"), 1) == [ModelStep("c", "Go", "c", "hello")]
    assert STEPS.path(seen("b", "c", "Go", says="hello"), 4) is None
    assert ModelStep("c", "Go", "c").silent
    assert not ModelStep("c", "Go", "c", "hello").silent


def test_windows_are_named() -> None:
    assert Seen("its", "a", frozenset(), "b").window == "its"
    assert Seen("its", "a", frozenset(), "b", first=3, stop=4).window == "its number 3"
    assert Seen("its", "a", frozenset(), "b", first=3, stop=6).window == "its numbers 3 to 5"


@pytest.mark.no_cover
def test_what_is_kept_was_cut_from_the_graphs() -> None:
    """Every step of the small graphs is there; the large ones are in `stablecast model views --record`."""
    kept = edges.load(MODELS)
    for one in catalog.configurations(MODELS):
        for view in VIEWS if one.name in FEW else ():
            scope = edges.scope_of(view, one)
            if scope is not None:
                cut = edges.cut(view, one.constants, edges.graph_of(one))
                assert cut
                assert cut <= kept.steps[view.name][scope].all


def test_every_graph_that_a_view_may_be_compared_with_was_cut() -> None:
    wanted = {
        one.name for one in catalog.configurations(MODELS) for view in VIEWS if edges.scope_of(view, one) is not None
    }
    assert set(edges.load(MODELS).graphs) == wanted


def test_what_is_kept_can_be_written_and_read(tmp_path: Path) -> None:
    (tmp_path / "graphs.json").write_text("{}")
    edges.save(tmp_path, RecordedSteps({}, {"View": {"scope": STEPS}}))
    assert edges.load(tmp_path).steps["View"]["scope"].all == STEPS.all
    assert '["a", "Go", "b", ""]' in (tmp_path / "views.json").read_text()


@pytest.mark.parametrize("text", ["", "[]", '{"graphs": {}, "steps": {"V": {"s": [["too", "short"]]}}}'])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "graphs.json").write_text("{}")
    (tmp_path / "views.json").write_text(text)
    with pytest.raises(ModelError, match="is not a record of views"):
        edges.load(tmp_path)


def test_steps_of_other_graphs_are_refused(tmp_path: Path) -> None:
    kept = json.loads((MODELS / "views.json").read_text())
    kept["graphs"]["Stability/graph_small"] = "0" * 64
    (tmp_path / "graphs.json").write_text((MODELS / "graphs.json").read_text())
    (tmp_path / "views.json").write_text(json.dumps(kept))
    with pytest.raises(ModelError, match="of another graph of Stability/graph_small"):
        edges.load(tmp_path)
