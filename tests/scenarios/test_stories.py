"""The stories of the guide's chapters, played: what happens is what is written."""

from pathlib import Path

import pytest

from tests.scenarios.stories import REWRITE, play

STORIES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_scenario_happens_as_written(path: Path) -> None:
    written, played = play(path)
    if REWRITE:
        path.write_text(played, encoding="utf-8")
    assert REWRITE or played == written, f"{path.name} is played otherwise; see tests/scenarios/stories.py"


def test_there_is_a_story_for_each_chapter() -> None:
    """Registration, normal operation, recovery, fault tolerance, proxies, receiver pacing, deregistration."""
    assert len(STORIES) >= 10
