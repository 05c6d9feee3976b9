"""Two living processes of one client: one is cut off, another takes its place, and the first comes back."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.store.source_history import SourceHistory
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.endpoint_configs import HOSTS
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, WorldSetup
from stablecast.lab.sim.source import SourceProcess
from tests.adapters.lab.sim.setups import lively

EVERYONE = property(lambda self: self.mask)
"""The documented rule of the vote: a store that lost its disk has one."""
SEEDS = range(12)
"""Worlds in which the hand-written run happens: the network has other delays in each."""


def comes_back(seed: int) -> Schedule:
    """Return the schedule in which a life that was cut off comes back behind one that few stores were told of.

    The first life gets numbers stable at store0 and store1, and is cut off. The second registers with store0 and
    store2; where it begins store0 alone is told, because the disk of store2 is slow. It dies. The first goes on with
    store1 and store2 in a second round, and then reaches store0.
    """
    faults = (
        Fault(1, Kind.CUT, SOURCE, other="store2", span_ms=505),
        Fault(500, Kind.CUT, SOURCE, 1700),
        Fault(500, Kind.CUT, SOURCE, other="store0", span_ms=2800),
        Fault(501, Kind.TWIN, SOURCE, 1499, amount=1),
        Fault(502, Kind.CUT, SOURCE, other="store1", span_ms=1498),
        Fault(502, Kind.CUT, SOURCE, other="store0", span_ms=1248),
        Fault(1720, Kind.SLOW, "store2", 600),
        Fault(1765, Kind.MUTE, SOURCE, other="store2", span_ms=335),
    )
    return Schedule(seed, ((470, 3), (3700, 1)), faults, WorldSetup(brief=True))


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", SEEDS)
def test_a_life_that_comes_back_deletes_nothing_that_is_stable(seed: int) -> None:
    """S2, S3; formal design, 7.3, 7.6."""
    assert run(comes_back(seed)).violations == ()


@pytest.mark.no_cover
@pytest.mark.parametrize("wiped", [(), (Fault(300, Kind.WIPE, "store2", 1),)])
def test_the_run_finds_a_store_that_cuts_where_the_life_began(
    monkeypatch: pytest.MonkeyPatch, wiped: tuple[Fault, ...]
) -> None:
    """The planted fault: the cut is at the resume point, though the store was told of this life before.

    A disk that is lost excuses that only if no quorum remembers the life any more.
    """
    resume = SourceHistory.resume
    # Otherwise the second life waits for the store that was cut off, and the fault has no run.
    monkeypatch.setattr(RegistrationSet, "voters", EVERYONE)

    def planted(self: SourceHistory, number: int, *args: Any) -> tuple[int, bool]:
        newest_here = self.lives[-1:] == [(self.incarnation, number)]
        cut, forgotten = resume(self, number, *args)
        return (cut if newest_here else min(cut, number)), forgotten

    monkeypatch.setattr(SourceHistory, "resume", planted)
    schedules = [attrs.evolve(plain, faults=(*wiped, *plain.faults)) for plain in map(comes_back, SEEDS)]
    found = [{violation.rule for violation in run(schedule).violations} for schedule in schedules]
    assert found.count({"S3"}) >= len(SEEDS) // 2


@pytest.mark.no_cover
@pytest.mark.parametrize("votes", [True, False])
def test_two_lives_of_which_the_later_knows_nothing_are_found(monkeypatch: pytest.MonkeyPatch, votes: bool) -> None:
    """A quorum knew the first life, and the disk of one of its two stores is lost. Neither life has the higher term.

    That happens only if an empty disk votes (formal design, 7.11), and nothing excuses it.
    """
    if votes:
        monkeypatch.setattr(RegistrationSet, "voters", EVERYONE)
    faults = (
        Fault(1, Kind.CUT, SOURCE, other="store1", span_ms=452),
        Fault(196, Kind.WIPE, "store2", 1),
        Fault(448, Kind.TWIN, SOURCE, 810, amount=1),
    )
    report = run(Schedule(9100021, ((853, 1),), faults, WorldSetup(brief=True)))
    assert {violation.rule for violation in report.violations} == ({"S3"} if votes else set())


def rival(cluster: Cluster, who: str, span_ms: int = 0) -> None:
    cluster.suffer(Fault(0, Kind.TWIN, who, span_ms))


def test_a_second_claimant_has_a_host_of_its_own_and_waits_for_the_first() -> None:
    """R1: as long as the first lives it holds the RegIDs, and messages of both are never mixed."""
    cluster = lively(WorldSetup(brief=True))
    first = cluster.source
    assert isinstance(first, SourceProcess)
    rival(cluster, SOURCE)
    second = cluster.source
    assert isinstance(second, SourceProcess)
    assert (first.host, second.host) == (HOSTS[SOURCE], "10.0.1.6")
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert (first.alive, first.machine.can_send, second.alive, second.machine.can_send) == (True, True, True, False)
    cluster.calm()
    assert not first.alive
    cluster.want(3)
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert trouble(cluster) is None
    assert cluster.checkers.facts.violations == []


def test_faults_befall_the_second_and_the_first_sends_when_it_is_gone() -> None:
    cluster = lively(WorldSetup(brief=True))
    first = cluster.source
    rival(cluster, SOURCE, span_ms=500)
    second = cluster.source
    assert isinstance(first, SourceProcess)
    assert isinstance(second, SourceProcess)
    cluster.suffer(Fault(0, Kind.CUT, SOURCE, other="store0", span_ms=200))
    assert cluster.network.blocked(second.host, HOSTS["store0"])
    assert not cluster.network.blocked(first.host, HOSTS["store0"])
    cluster.world.run(cluster.world.now + 600 * MILLISECOND)
    assert not second.alive
    cluster.want(5)
    cluster.world.run(cluster.world.now + SECOND)
    assert first.idle
    assert cluster.checkers.facts.counts["stable"] == 15


def test_the_first_goes_on_in_peace_if_the_second_is_dead() -> None:
    """Nobody waits for a third life: receivers follow the first one again."""
    cluster = lively(WorldSetup(brief=True))
    first = cluster.source
    rival(cluster, SOURCE, span_ms=500)
    cluster.world.run(cluster.world.now + 600 * MILLISECOND)
    cluster.calm()
    assert cluster.source is first
    cluster.want(3)
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert trouble(cluster) is None
    assert cluster.checkers.facts.counts["stable"] == 13


def test_a_rival_whose_end_was_to_come_in_peace_stays() -> None:
    cluster = lively(WorldSetup(brief=True))
    rival(cluster, RECEIVERS[0], span_ms=500)
    cluster.calm()
    cluster.world.run(cluster.world.now + SECOND)
    assert cluster.processes[RECEIVERS[0]].alive


def test_nobody_rivals_the_dead() -> None:
    cluster = lively(WorldSetup(brief=True))
    dead = cluster.processes[SOURCE]
    cluster.suffer(Fault(0, Kind.KILL, SOURCE, 100))
    rival(cluster, SOURCE)
    assert cluster.processes[SOURCE] is dead
