"""Applications with a backlog: what waits in the inbox when a source returns is handed over once, and in order."""

import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import FOREVER
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.settings import AckMode
from stablecast.core.registration.store_registration import Registration
from stablecast.core.subscription.consumption import Consumption
from stablecast.core.subscription.succession import Ranges, Succession
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.runner import Report, run
from stablecast.lab.sim.schedule import Act, Fault, Schedule
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, Habit, WorldSetup
from tests.adapters.lab.sim.setups import lively

RETURNS = (Fault(700, Act.CRASH, SOURCE, "", 40, True), Fault(2900, Act.CRASH, SOURCE, "", 300, False))
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


@pytest.mark.no_cover
def test_what_a_life_that_the_receiver_never_heard_of_used_again_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history of the life after it tells. The planted fault: only what this life itself uses again is dropped."""
    faults = (
        Fault(430, Act.STALL, SOURCE, "store0", 120, False),
        Fault(430, Act.STALL, SOURCE, "store2", 120, False),
        Fault(440, Act.STALL, SOURCE, RECEIVERS[0], 2, True),
        Fault(521, Act.CRASH, SOURCE, "", 149, True),
        Fault(528, Act.CRASH, "store1", "", 774, False),
        Fault(1327, Act.CRASH, SOURCE, "", 119, True),
        Fault(1342, Act.CRASH, SOURCE, "", 68, True),
    )
    sends = (
        (435, 40),
        (456, 2),
        (466, 8),
        (505, 1),
        (515, 3),
        (523, 7),
        (539, 29),
        (630, 4),
        (803, 19),
        (1202, 1),
        (1728, 6),
        (1729, 1),
        (1742, 5),
        (1906, 1),
        (1991, 7),
        (2078, 6),
        (2645, 1),
        (2967, 22),
        (3165, 1),
        (3484, 7),
        (3491, 11),
        (3920, 1),
        (3956, 6),
        (3977, 1),
    )
    schedule = Schedule(9100209, sends, faults, WorldSetup(habit=Habit.BLOCKING, refill=False))
    assert run(schedule).violations == ()

    def planted(self: Succession, life: int) -> int:
        return FOREVER if life == self.machine.config.incarnation else self.machine.arrivals.resume_point

    monkeypatch.setattr(Succession, "parting", planted)
    assert {violation.rule for violation in run(schedule).violations} == {"D1"}


@pytest.mark.no_cover
def test_what_is_consumed_while_a_life_has_another_store_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1: the store that was away sends it again. The planted fault: the session that ends last is right."""
    faults = (
        Fault(2046, Act.CRASH, SOURCE, "", 10, True),
        Fault(2056, Act.CRASH, "store0", "", 196, False),
        Fault(2866, Act.CRASH, SOURCE, "", 1, True),
    )
    schedule = Schedule(
        9004614, ((2013, 14),), faults, WorldSetup(turns=True, resolution=40, habit=Habit.BLOCKING, refill=False)
    )
    assert run(schedule).violations == ()
    # Clients of that time told of each late answer, which keeps an application that blocks from its messages.
    monkeypatch.setattr(Registration, "_asked_late", lambda *_: False)
    monkeypatch.setattr(Registration, "_tries", property(lambda _: 1))

    def planted(self: Consumption, reported: dict[int, Ranges]) -> None:
        self.lives |= {life: RangeSet(ranges) for life, ranges in reported.items()}

    monkeypatch.setattr(Consumption, "add", planted)
    violations = run(schedule).violations
    assert {violation.rule for violation in violations} == {"D1"}
    assert all("twice in one run" in violation.text for violation in violations)


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
