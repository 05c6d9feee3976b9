"""Applications with a backlog: what waits in the inbox when a source returns is handed over once, and in order."""

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.settings import AckMode
from stablecast.core.subscription.succession import Succession
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.runner import Report, run
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, Habit, WorldSetup
from tests.adapters.lab.sim.setups import lively

RETURNS = (Fault(700, Kind.KILL, SOURCE, 40, amount=1), Fault(2900, Kind.KILL, SOURCE, 300))
"""The source is killed while a backlog waits, and comes back; then once more."""


def report(habit: Habit, seed: int = 1, **changes: object) -> Report:
    """Run a world with a backlog of about two seconds, in which the source returns; return its report."""
    setup = WorldSetup(habit=habit, **changes)  # type: ignore[arg-type]  # whatever a setup has
    return run(Schedule(seed, ((500, 150), (680, 20), (2800, 60), (3500, 20)), RETURNS, setup))


@pytest.mark.rows("P-008", "P-402")
@pytest.mark.no_cover
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("habit", Habit)
@pytest.mark.parametrize("arrival", [False, True])
def test_each_message_is_handed_over_once_in_one_run(habit: Habit, arrival: bool, seed: int) -> None:
    """P-008, P-402, D1: whatever the application does while its source is away."""
    found = report(habit, seed, arrival=arrival)
    assert found.violations == ()
    assert found.counts["lives"] == 3


@pytest.mark.rows("P-347", "P-348")
@pytest.mark.no_cover
@pytest.mark.parametrize("large", [0, 5])
def test_threads_acknowledge_later_in_any_order(large: int) -> None:
    found = report(Habit.THREADED, ack_mode=AckMode.EXPLICIT, large=large)
    assert found.violations == ()


@pytest.mark.no_cover
@pytest.mark.parametrize("habit", list(Habit)[1:])
def test_a_session_that_inherits_nothing_is_found(monkeypatch: pytest.MonkeyPatch, habit: Habit) -> None:
    """The planted fault: what waits is nothing to the session with the next life. A prompt application hides it."""
    monkeypatch.setattr(Succession, "due", property(lambda _: False))
    (violation, *_) = report(habit).violations
    assert violation.rule == "D1"
    assert "in one run" in violation.text
    assert report(Habit.PROMPT).violations == ()


def test_an_application_that_blocks_stops_its_process() -> None:
    """Its timers do not ring and nothing is read meanwhile; a process that is stopped already stays so."""
    cluster = lively(WorldSetup(habit=Habit.BLOCKING))
    receiver = cluster.processes[RECEIVERS[0]]
    assert isinstance(receiver, ReceiverProcess)
    receiver._application._block(SECOND)
    states = [receiver.frozen]
    receiver._application._block(10 * SECOND)
    cluster.world.run(cluster.world.now + SECOND)
    assert [*states, receiver.frozen] == [True, False]
    cluster.want(5)
    cluster.world.run(cluster.world.now + 5 * SECOND)
    assert cluster.checkers.facts.violations == []
