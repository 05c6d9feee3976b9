"""Seeds shared by processes: the lowest failing seed is found, and each world is counted."""

import os

import pytest

from stablecast.testing import parallel_seeds
from stablecast.testing.parallel_seeds import SeedProcessError, first_failing


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with children at once."""
    monkeypatch.setattr(parallel_seeds, "ALONE_S", -1.0)


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("failing", [{7}, {0}, {99}, {31, 30, 62}, set()])
def test_the_lowest_failing_seed_is_found(jobs: int, failing: set[int]) -> None:
    found = first_failing(range(100), lambda seed: (seed in failing, []), jobs, lambda *_: None)
    assert found == min(failing, default=None)


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_world_is_counted(jobs: int) -> None:
    counted: list[tuple[int, list[str]]] = []
    first_failing(range(20), lambda seed: (False, ["crash"] * (seed % 3)), jobs, lambda *one: counted.append(one))
    assert sorted(counted) == [(seed, ["crash"] * (seed % 3)) for seed in range(20)]


def test_a_process_that_dies_is_reported() -> None:
    def one(seed: int) -> tuple[bool, list[str]]:
        if seed == 5:
            os._exit(3)
        return False, []

    with pytest.raises(SeedProcessError, match="run the test with --stablecast-jobs 1"):
        first_failing(range(10), one, 2, lambda *_: None)
