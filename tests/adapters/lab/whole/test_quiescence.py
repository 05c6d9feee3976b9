"""A whole world has settled when everything is delivered, and when stores have back what they lacked."""

import pytest

from stablecast.core.store.refill import SourceRefill
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole.conductor import SHORT_WAIT
from stablecast.lab.whole.quiescence import heals, is_lacking
from stablecast.lab.whole.runner import run
from stablecast.lab.whole.schedule import MEMORY, PACED, SOURCE, TURNS, Setup, WorldSchedule
from stablecast.store.store_log import ASKED, WHOLE

ASKS = f"source 5: the store was away and lacks 3 messages; {ASKED}"
HAS_ALL = f"source 5: {WHOLE}, 3 messages came back"


@pytest.mark.parametrize(
    ("output", "lacking"),
    [([], False), ([ASKS], True), ([ASKS, HAS_ALL], False), ([ASKS, "other", HAS_ALL, ASKS], True)],
)
def test_a_store_lacks_messages_until_it_prints_that_nothing_is_lacking(output: list[str], lacking: bool) -> None:
    assert is_lacking(output) is lacking


@pytest.mark.parametrize(
    ("setup", "fault", "healing"),
    [
        (Setup(), Fault(1, Kind.WIPE, "store1", 9), True),
        (Setup(), Fault(1, Kind.LEAVE, "receiver1", 9), True),
        (Setup(), Fault(1, Kind.LEAVE, SOURCE, 9), False),
        (Setup(options=((PACED, 1),)), Fault(1, Kind.KILL, "store1", 9), False),
        (Setup(kept=5), Fault(1, Kind.KILL, "store1", 9), False),
        (Setup(storage=MEMORY), Fault(1, Kind.STOP, "store1", 9), False),
        (Setup(storage=TURNS), Fault(1, Kind.KILL, "receiver1", 9), False),
    ],
)
def test_some_messages_cannot_come_back(setup: Setup, fault: Fault, healing: bool) -> None:
    assert heals(WorldSchedule(1, setup, (fault,))) is healing


@pytest.mark.no_cover
@pytest.mark.parametrize("do", [Kind.WIPE, Kind.RESTORE, Kind.KILL])
def test_a_store_that_gets_nothing_back_is_found(do: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: no request of a refill is sent."""
    schedule = WorldSchedule(4, Setup(store_options=SHORT_WAIT), (Fault(1_500, do, "store1", 700),))
    assert run(schedule).violations == ()
    monkeypatch.setattr(SourceRefill, "issue", lambda *_: None)
    (violation,) = run(schedule).violations
    assert violation.startswith("hang: 90 s after the last fault store1 lacks messages"), violation
