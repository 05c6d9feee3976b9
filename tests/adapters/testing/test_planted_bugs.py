"""Bugs of applications are found within 200 seeds, and nothing is found in the mended applications.

`python -m tests.adapters.testing.planted_bugs 5000` runs many more worlds of the mended ones.
"""

import pytest

from stablecast.testing import minimal_schedule
from tests.adapters.testing.planted_bugs import BUGS, PlantedBug

pytestmark = pytest.mark.no_cover

SEEDS = 200
MENDED_SEEDS = 5


@pytest.fixture(autouse=True)
def _as_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave schedules as they are drawn: their search is tested elsewhere."""
    monkeypatch.setattr(minimal_schedule, "RUNS", 0)


def test_there_are_twenty_bugs() -> None:
    assert len({one.name for one in BUGS}) == len(BUGS) >= 20


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_bug_is_found(bug: PlantedBug) -> None:
    assert bug.explore(SEEDS, mended=False).found is not None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_nothing_is_found_in_the_mended_application(bug: PlantedBug) -> None:
    report = bug.explore(MENDED_SEEDS, mended=True)
    assert report.found is None
    assert report.worlds == MENDED_SEEDS
