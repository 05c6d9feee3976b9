"""A handful of schedules has equal outcomes in the world and on real processes. `make agreement` plays many."""

from pathlib import Path

import pytest

from tools.agreement.__main__ import compared
from tools.agreement.drawn_schedules import draw
from tools.torture.__main__ import obstacle

OBSTACLE = obstacle()
pytestmark = [pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)]

SEEDS = (1, 11, 36, 10)
"""Together they have kills, stops, links that are cut or one way, noise, slow syncs and an emptied directory."""


def test_a_handful_of_schedules_agrees(tmp_path: Path) -> None:
    for one in compared([draw(seed) for seed in SEEDS], tmp_path, len(SEEDS)):
        assert one.differences == {}, f"make agreement ARGS='--seed {one.schedule.seed} --schedules 1' plays it again"
        assert one.bad == []
