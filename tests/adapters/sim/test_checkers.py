"""Checkers bite: a fault planted in a machine is seen, by the rule that is about it."""

import pytest

from stablecast.sim.rules import RULES
from stablecast.sim.runner import run
from stablecast.sim.schedule import draw
from tests.adapters.sim.planted import PLANTED, Plant

MAX_SEEDS = 20


@pytest.mark.parametrize(("plant", "rule", "seed"), PLANTED)
def test_a_planted_fault_is_seen(plant: Plant, rule: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`seed` is where it showed when this was written; more are tried, as worlds change with what they contain."""
    plant(monkeypatch)
    for candidate in range(seed, seed + MAX_SEEDS):
        found = [violation.rule for violation in run(draw(candidate)).violations]
        if found:
            assert rule in found
            return
    pytest.fail(f"{plant.__name__} was not seen in {MAX_SEEDS} seeds from {seed}")


def test_every_rule_has_a_fault_that_breaks_it() -> None:
    assert {rule for _, rule, _ in PLANTED} == set(RULES)
