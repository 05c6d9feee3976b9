"""Frames of a world: to watch changes nothing, and they show faults, elections and broken promises."""

import json

from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.frames import digest, film
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import Schedule, draw
from stablecast.lab.sim.setup import WorldSetup

SENDS = tuple((300 + 100 * index, 1) for index in range(35))
ABSENT_MAJORITY = (
    Fault(250, Kind.CUT, "source", other="store2", span_ms=1700, amount=1),
    Fault(1500, Kind.KILL, "source", 200),
    Fault(1500, Kind.KILL, "store0", 1500),
)
"""The run of finding 7.1: the source returns to one store that has its messages and to one that has none."""


def test_a_world_that_is_watched_has_the_digest_of_one_that_is_not() -> None:
    for seed in (7, 24):
        transcript: list[str] = []
        run(draw(seed, wipe=False), transcript=transcript)
        seen = film(draw(seed, wipe=False))
        assert seen.digest == digest(transcript)
        assert json.loads(json.dumps(seen.as_json()))["digest"] == seen.digest


def test_documented_rules_use_numbers_of_stable_messages_again_and_the_repaired_ones_do_not() -> None:
    documented, repaired = (
        film(Schedule(7, SENDS, ABSENT_MAJORITY, WorldSetup(documented=value))) for value in (True, False)
    )
    assert documented.report.violations[0].rule == "S2"
    assert repaired.report.violations == ()
    assert any(frame["broken"] for frame in documented.frames)


def test_the_documented_setup_survives_its_way_through_json() -> None:
    schedule = Schedule(7, SENDS, ABSENT_MAJORITY, WorldSetup(documented=True))
    assert Schedule.from_json(json.loads(json.dumps(schedule.as_json()))) == schedule


def test_a_store_that_dies_is_shown_and_its_holes_too() -> None:
    seen = film(Schedule(10, SENDS, (Fault(1000, Kind.KILL, "store1", 1500),)))
    alive = [frame["stores"][1]["alive"] for frame in seen.frames if 1100 < frame["ms"] < 2400]
    assert not any(alive)
    assert any(frame["stores"][1]["holes"] for frame in seen.frames)
    assert not any(frame["stores"][0]["holes"] for frame in seen.frames)


def test_an_election_is_shown() -> None:
    faults = (Fault(1000, Kind.KILL, "source", 2800),)
    seen = film(Schedule(7, SENDS, faults, WorldSetup(proxies=True)))
    assert any(store["proxies"] for frame in seen.frames for store in frame["stores"])
