"""The core is equal to its models: the same states, the same labelled steps, for every recorded configuration."""

import pytest

from stablecast.lab.model import catalog, equal
from stablecast.lab.model.catalog import Configuration
from tests.support.tiers import GATE_STATES
from tests.support.verdicts import Verdict

MODELS = catalog.folder()
CONFIGURATIONS = catalog.configurations(MODELS)
GRAPHS = [one for one in CONFIGURATIONS if one.has_graph]
KNOWN = catalog.load(MODELS)
ALWAYS_STATES = 500
"""The largest graph that is explored although its verdict is kept."""
LARGE = [one for one in GRAPHS if one.name not in KNOWN or KNOWN[one.name].digests.nodes > GATE_STATES]


@pytest.mark.parametrize("one", [one for one in GRAPHS if one not in LARGE], ids=lambda one: one.name)
def test_the_core_has_the_graph_of_the_model(one: Configuration) -> None:
    """Registrations: P-217, P-234, P-530..P-535, P-602, T6, T7, U18. Proxies: P-541, P-548, P-553..P-555, T23, C-14.

    Resolution: T-024, T-103, T-106, T-113, T-307, T-402..T-418, T26, T27.
    """
    show(one)


@pytest.mark.parametrize("one", LARGE, ids=lambda one: one.name)
def test_the_core_has_the_large_graph_of_the_model(one: Configuration) -> None:
    show(one)


def show(one: Configuration) -> None:
    known = KNOWN.get(one.name)
    verdict = Verdict(one.name, (str(known), str(one.hashes())), (equal, equal.world_module(one.model)))
    if verdict.shown and not (known and known.digests.nodes <= ALWAYS_STATES):
        return
    with verdict.showing():
        result = equal.compare(one, known)
        print(f"{one.name}: {result.nodes} states, {result.edges} edges")
        assert result.equal, result.difference


def test_every_graph_is_on_record_and_of_the_present_files() -> None:
    assert sorted(KNOWN) == sorted(one.name for one in GRAPHS)
    for one in GRAPHS:
        assert KNOWN[one.name].hashes == one.hashes(), one.name
        assert KNOWN[one.name].constants.items() <= one.sources.items(), one.name


def test_every_model_has_a_large_graph() -> None:
    """Ten thousand states and more."""
    large = {one.model for one in GRAPHS if KNOWN[one.name].digests.nodes >= 10_000}
    assert large == {one.model for one in CONFIGURATIONS}


def test_names_tell_what_a_configuration_expects() -> None:
    for one in CONFIGURATIONS:
        named_for_what_it_expects(one)


def named_for_what_it_expects(one: Configuration) -> None:
    kind = one.path.stem.partition("_")[0]
    fails = kind in {"mut", "doc"}
    assert one.expected.startswith("violates") is fails
    assert fails or one.constants["Mutant"] == "none"
    assert kind != "mut" or one.constants["Mutant"] != "none"
    assert one.path.stem.endswith("_bug") is (kind == "mut")
    assert one.purpose.endswith(".")
    if fails:
        assert one.expected.removeprefix("violates ") in (*one.invariants, *one.properties)


def test_every_invariant_has_a_mutant_that_breaks_it() -> None:
    for model in {one.model for one in CONFIGURATIONS}:
        mine = [one for one in CONFIGURATIONS if one.model == model]
        broken = {one.expected.removeprefix("violates ") for one in mine}
        stated = {name for one in mine if one.expected == "ok" for name in one.invariants}
        assert stated <= broken, model
