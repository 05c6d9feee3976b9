"""Samples are chosen, written for the checker, and judged by what it says."""

from pathlib import Path

import pytest

from stablecast.lab.model import catalog, trace_samples
from stablecast.lab.model.errors import ModelError
from stablecast.lab.model.trace_samples import Sample
from stablecast.lab.model.views.edges import ModelStep, TraceView
from stablecast.lab.model.views.registration_store import HOLDER
from stablecast.lab.model.views.stability_store import STORE
from tests.adapters.lab.model.checker import CLEAN, install

WRITTEN = ModelStep("new", "ToStore", "new mine")
SYNCED = ModelStep("new mine", "Sync", "new mine synced told")
SAMPLE = Sample(STORE, "any", (WRITTEN, SYNCED))


def test_different_samples_are_chosen_those_with_the_most_steps_first() -> None:
    followed = [(STORE, "any", steps) for steps in ([WRITTEN], [WRITTEN, SYNCED], [WRITTEN])]
    assert trace_samples.choose(followed, 2) == [SAMPLE, Sample(STORE, "any", (WRITTEN,))]
    assert trace_samples.choose(followed, 1) == [SAMPLE]


def test_what_says_nothing_in_a_row_and_what_is_over_is_left_out() -> None:
    close = ModelStep("a, b", "Close", "a, c")
    followed: list[tuple[TraceView, str, list[ModelStep]]] = [(HOLDER, "any", [WRITTEN]), (STORE, "any", [])]
    followed.append((STORE, "any", [WRITTEN, close, SYNCED]))
    assert trace_samples.choose(followed, 5) == [Sample(STORE, "any", (WRITTEN,))]


def test_a_run_is_found_in_the_smallest_graph_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = install(tmp_path, monkeypatch, "Error: Invariant Unfinished is violated.\n")
    (judged,) = trace_samples.judge([SAMPLE], catalog.folder(), jar)
    assert (judged.configuration, judged.tried) == ("Stability/graph_rivals", ("Stability/graph_rivals",))
    assert judged.as_json()["run_of"] == "Stability/graph_rivals"


def test_without_a_run_all_were_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (judged,) = trace_samples.judge([SAMPLE], catalog.folder(), install(tmp_path, monkeypatch, CLEAN))
    assert judged.configuration == ""
    assert {"Stability/graph_lives", "Stability/graph_three"} < set(judged.tried)


def test_no_verdict_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="failed on a sample of Stability/graph_rivals: out of memory"):
        list(trace_samples.judge([SAMPLE], catalog.folder(), install(tmp_path, monkeypatch, "out of memory")))


@pytest.mark.parametrize("model", ["Recovery", "Registration", "Stability"])
def test_every_model_that_traces_show_has_a_module_for_samples(model: str) -> None:
    text = (catalog.folder() / model / f"Trace{model}.tla").read_text()
    assert f"EXTENDS MC{model}, TLC" in text
    assert "Unfinished == at < Len(Sample)" in text
