"""The chapter lists graphs on record and every configuration."""

from pathlib import Path

import pytest

from stablecast.lab.model import catalog, equal
from tests.adapters.lab.model import small
from tests.adapters.lab.model.checker import CLEAN, install
from tests.support.model_chapter import render


def test_without_a_record_configurations_are_listed(small_models: Path) -> None:
    assert render(small_models).splitlines() == [
        "## Small",
        "",
        "| configuration | shows | verdict | of |",
        "|---|---|---|---|",
        "| graph_four | It counts to 4. | ok | Small |",
        "| graph_one | It counts to 1. | ok | Small |",
    ]


def test_what_is_on_record_has_a_table(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = install(tmp_path, monkeypatch, CLEAN, small.dump(1))
    (one,) = catalog.configurations(small_models, ("Small/graph_one",))
    equal.record(one, small_models, jar)
    assert "| graph_one | It counts to 1. | Limit 1 | 2 | 2 | 1 | `" in render(small_models)
