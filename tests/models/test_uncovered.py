"""The list of functions that no graph runs fits the core. `stablecast model uncovered` compares all graphs."""

import json

from typer.testing import CliRunner

from stablecast.cli.model import app
from stablecast.lab.model import catalog, uncovered

MODELS = catalog.folder()
SMALL = ("ResolutionPhases/graph_small", "Stability/graph_rivals")
"""Graphs that are explored in a second."""


def test_listed_functions_exist_and_have_a_reason() -> None:
    known = uncovered.reasons(MODELS)
    assert known.keys() <= set(uncovered.functions().values())
    assert all(reason.endswith(".") for reason in known.values())


def test_listed_functions_do_not_run_in_small_graphs() -> None:
    ran = uncovered.called(catalog.configurations(MODELS, SMALL))
    every = uncovered.functions()
    used = {every[place] for place in ran if place in every}
    assert len(used) > 100
    assert not used & uncovered.reasons(MODELS).keys()


def test_the_command_lists_what_never_ran() -> None:
    said = CliRunner().invoke(app, ["uncovered", SMALL[0], "--json"])
    told = json.loads(said.output)
    # One small graph runs few functions, so functions without a reason remain.
    assert said.exit_code == 1
    assert not told["explained"]
    assert "source.endpoint.SourceEndpoint.create" in told["unused"]
