"""Worlds of applications that found a defect of the client: what the application promises must now be true."""

import attrs
import pytest

from stablecast.testing.schedule import MILLISECOND, Strike
from stablecast.testing.world_run import WorldSetting, run_world
from tests.adapters.testing.planted_bugs import BUGS


@attrs.frozen
class FoundWorld:
    """A seed and faults in which the mended application of a planted bug broke its promise."""

    bug: str
    seed: int
    strikes: tuple[Strike, ...]


FOUND = {
    # The application slept while a request of it was unanswered. It gave up the messages, though three stores had them.
    "sleep_during_recovery": FoundWorld(
        "wrong_shutdown_order",
        1207,
        (
            Strike("crash", "app", turn=13, span=1 * MILLISECOND),
            Strike("crash", "shop", turn=32, span=1 * MILLISECOND),
            Strike("stop", "app", at=548_375_997, span=19_418_604_025),
        ),
    ),
    # A source's host lost its power, and its next life had the stores. A receiver that still had the old stream asked
    # in vain, and gave up the history in the moment in which it noticed.
    "history_of_an_ended_life": FoundWorld(
        "missing_sync",
        2980,
        (
            Strike("crash", "app", turn=8, span=19_762_535, power=True),
            Strike("crash", "app", turn=27, span=33_465_074, power=True),
            Strike("crash", "shop", turn=29, span=84_781_644, power=True),
            Strike("crash", "shop", turn=74, span=100 * MILLISECOND, power=True),
        ),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_application_keeps_its_promise(name: str) -> None:
    found = FOUND[name]
    bug = next(one for one in BUGS if one.name == found.bug)
    outcome = run_world(WorldSetting(bug.stores), lambda world: bug.scenario(world, True), found.seed, found.strikes)
    assert outcome.failure is None
    assert len(outcome.struck) == len(found.strikes)
