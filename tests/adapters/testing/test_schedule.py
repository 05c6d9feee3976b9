"""Schedules: a seed repeats its draw, strikes hit what the faults name, and a literal gives the schedule back."""

import json
from ast import literal_eval

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import ConfigError
from stablecast.testing import (
    clock,
    crash,
    delay,
    failing_disk,
    loss,
    partition,
    reset,
    restore,
    rot,
    slow_disk,
    stop,
    wipe,
)
from stablecast.testing.failure_report import literals
from stablecast.testing.faults import FaultKind, FaultKinds, as_faults
from stablecast.testing.schedule import Activity, HostActivity, Strike, draw, schedule_of

ACTIVITY = Activity(
    {
        "store0": HostActivity("store", 400),
        "store1": HostActivity("store", 300),
        "app": HostActivity("app", 200),
        "source": HostActivity("app", 100),
        "relay": HostActivity("relay", 50),
    },
    2_000_000_000,
)
ALL = (
    crash(power=True)
    | stop("store")
    | partition(one_way=True)
    | loss()
    | delay()
    | reset()
    | slow_disk()
    | failing_disk()
    | rot()
    | wipe()
    | restore(declared=False)
    | clock(leap=100)
    | clock(drift=200)
)


def strikes(faults: FaultKinds | FaultKind, seeds: int = 200, most: int = 5) -> list[Strike]:
    return [one for seed in range(seeds) for one in draw(seed, as_faults(faults), ACTIVITY, most)]


def test_a_seed_repeats_its_schedule() -> None:
    assert all(draw(seed, ALL, ACTIVITY, 5) == draw(seed, ALL, ACTIVITY, 5) for seed in range(50))


def test_seeds_differ() -> None:
    assert len({tuple(draw(seed, ALL, ACTIVITY, 5)) for seed in range(200)}) > 190


def test_all_kinds_are_drawn() -> None:
    assert {one.fault for one in strikes(ALL)} == {kind.kind for kind in ALL.kinds}


def test_a_schedule_has_at_most_the_strikes_that_are_asked_for() -> None:
    assert {len(draw(seed, ALL, ACTIVITY, 3)) for seed in range(100)} == {1, 2, 3}


@pytest.mark.parametrize(
    ("fault", "hosts"),
    [
        (crash("store"), {"store0", "store1"}),
        (crash("store1"), {"store1"}),
        (crash("app"), {"app", "source"}),
        (crash(), {"app", "source", "store0", "store1"}),
        (crash("relay"), {"relay"}),
    ],
)
def test_victims_are_hosts_by_name_or_kind(fault: FaultKind, hosts: set[str]) -> None:
    assert {one.on for one in strikes(fault)} == hosts


def test_a_path_has_two_ends() -> None:
    assert all(one.on != one.to for one in strikes(partition()))
    assert {(one.on, one.to) for one in strikes(partition("app", "store1"))} == {
        ("app", "store1"),
        ("source", "store1"),
    }


def test_strikes_happen_within_the_activity() -> None:
    found = strikes(ALL)
    assert all(one.turn <= ACTIVITY.hosts[one.on].turns for one in found)
    assert all(0 <= one.at <= ACTIVITY.end for one in found)
    assert {bool(one.turn) for one in found} == {False, True}


def test_an_unknown_host_is_refused() -> None:
    with pytest.raises(ConfigError, match="crash names 'nobody', but the test started nothing there"):
        strikes(crash("nobody"))


def test_what_is_no_fault_is_refused() -> None:
    with pytest.raises(ConfigError, match="'crash' is no fault"):
        as_faults("crash")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [lambda: loss(0), lambda: loss(2), clock, lambda: clock(leap=1, drift=1)])
def test_wrong_strengths_are_refused(wrong: object) -> None:
    with pytest.raises(ConfigError):
        wrong()  # type: ignore[operator]


@given(st.integers(0, 1 << 40))
def test_a_literal_gives_the_schedule_back(seed: int) -> None:
    drawn = draw(seed, ALL, ACTIVITY, 5)
    text = literals(drawn)
    assert schedule_of(literal_eval(text)) == drawn
    assert schedule_of(json.loads(json.dumps(literal_eval(text)))) == drawn


@pytest.mark.parametrize(
    ("literal", "sentence"),
    [
        ({"on": "app"}, "has no 'fault'"),
        ({"fault": "flood", "on": "app"}, "names no known fault: choose from crash, delay"),
        ({"fault": "crash", "on": "app", "turns": 3}, "has unknown keys: turns"),
    ],
)
def test_a_malformed_literal_is_refused(literal: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        schedule_of([literal])


def test_strikes_are_described() -> None:
    assert str(Strike("crash", "app", turn=1_200, span=5_000_000)) == "crash of app at turn 1,200 for 5 ms"
    assert str(Strike("restore", "store0", at=2_000_000, span=5_000_000, undeclared=True)) == (
        "restore (undeclared) of store0 at 2 ms for 5 ms"
    )
    assert str(Strike("partition", "app", "store0", at=1_500_000, one_way=True)) == (
        "partition of app -> store0 at 1.5 ms"
    )


def test_the_activity_is_given_back() -> None:
    assert Activity.of(json.loads(json.dumps(ACTIVITY.literal()))) == ACTIVITY
