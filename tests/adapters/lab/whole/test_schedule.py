"""Schedules of whole worlds: written down, read again, made smaller."""

import json
from collections import Counter

import attrs
import pytest

from stablecast.lab.schedules.faults import Fault, Kind, ScheduleError
from stablecast.lab.whole.drawn_schedule import draw
from stablecast.lab.whole.schedule import Setup, WorldSchedule, smaller

DRAWN = [draw(seed) for seed in range(600)]


def test_schedules_survive_json() -> None:
    for schedule in DRAWN:
        assert WorldSchedule.from_json(json.loads(schedule.text())) == schedule


def test_schedules_of_earlier_releases_are_read() -> None:
    """Fields that they do not name have their defaults."""
    setup = {field.name: getattr(Setup(), field.name) for field in attrs.fields(Setup)}
    for name in ("stored", "pattern", "start", "group", "apart", "hot"):
        del setup[name]
    value = WorldSchedule(7, faults=(Fault(1, Kind.KILL, "source"),)).as_json()
    assert WorldSchedule.from_json({**value, "setup": setup}) == WorldSchedule.from_json(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"seed": 1},
        {"seed": 1, "setup": {}, "faults": [{"at_ms": 1}]},
        {**WorldSchedule(1).as_json(), "setup": {"colour": "red"}},
        WorldSchedule(1, faults=(Fault(1, Kind.KILL, "nobody"),)).as_json(),
        WorldSchedule(1, faults=(Fault(1, Kind.CUT, "source", other="nobody"),)).as_json(),
    ],
)
def test_a_file_that_is_no_schedule_is_refused(value: object) -> None:
    with pytest.raises(ScheduleError):
        WorldSchedule.from_json(value)


def test_a_fault_is_a_line() -> None:
    assert str(Fault(5, Kind.CUT, "source", 7, "store0", 1)) == "5 ms: cut source and store0 for 7 ms, 1"


def _weight(schedule: WorldSchedule) -> tuple[int, int, int]:
    """Return the number of faults, of changes to the plain setup, and the total time of the faults."""
    plain = Setup()
    changes = Counter(
        getattr(schedule.setup, field.name) != getattr(plain, field.name) for field in attrs.fields(Setup)
    )
    return len(schedule.faults), changes[True], sum(fault.span_ms for fault in schedule.faults)


def test_smaller_schedules_are_smaller_and_end() -> None:
    for schedule in DRAWN[:40]:
        for found in smaller(schedule):
            assert _weight(found) < _weight(schedule)
            assert all(one <= other for one, other in zip(_weight(found), _weight(schedule), strict=True))
    assert list(smaller(WorldSchedule(1))) == []
