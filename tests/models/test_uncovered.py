"""The list of functions that no graph runs fits the core. `stablecast model uncovered` compares all graphs."""

import json

from typer.testing import CliRunner

from stablecast.cli.model import app
from stablecast.lab.model import catalog, uncovered

MODELS = catalog.folder()
SMALL = ("ResolutionPhases/graph_small", "Stability/graph_rivals")
"""Graphs that are explored in a second."""


def test_listed_functions_exist_and_have_a_reason() -> None:
    known, every = uncovered.reasons(MODELS), set(uncovered.functions().values())
    assert known.functions.keys() <= every
    assert known.branches.keys() <= every - known.functions.keys()
    assert all(reason.endswith(".") for reason in known.functions.values())
    assert all(most > 0 and reason.endswith(".") for most, reason in known.branches.values())


def test_listed_functions_do_not_run_in_small_graphs() -> None:
    ran = uncovered.covered(catalog.configurations(MODELS, SMALL))
    every = uncovered.functions()
    used = {every[place] for place in ran.functions}
    assert len(used) > 100
    assert not used & uncovered.reasons(MODELS).functions.keys()


def test_branches_are_counted_by_function() -> None:
    ran = uncovered.covered(catalog.configurations(MODELS, SMALL[1:]))
    counted = {name: ran.branches[place] for place, name in uncovered.functions().items() if place in ran.branches}
    total, missed = counted["protocol.quorum.Quorums.judge"]
    assert 0 < missed < total
    assert counted["receiver.hot_failover.HotFailover.join"][0] == counted["receiver.hot_failover.HotFailover.join"][1]


def test_the_command_lists_what_never_ran() -> None:
    said = CliRunner().invoke(app, ["uncovered", SMALL[0], "--json"])
    told = json.loads(said.output)
    # One small graph runs few functions, so functions without a reason remain.
    assert said.exit_code == 1
    assert not told["explained"]
    assert "source.endpoint.SourceEndpoint.create" in told["unused"]
    assert told["missed"] < told["branches"]
