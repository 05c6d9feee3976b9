"""The checkers of the source and of registrations: what each says of the least that breaks its rule.

`tools/mutants` breaks them in worlds.
"""

import attrs
import pytest

from stablecast.core.protocol.events import Oddity, Wakeup
from stablecast.core.protocol.settings import RegistrationTimes
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.registration.store_registration import Registration, RegistrationState
from stablecast.lab.sim.setup import STORES
from tests.adapters.lab.sim.checker_world import (
    LIFE,
    NEXT,
    broken,
    stable,
    store,
    world,
)
from tests.core.samples import register


def test_stable_is_what_enough_disks_have() -> None:
    checkers = world()
    store(checkers, 0, 2, STORES[:2])
    store(checkers, 2, 3, STORES[:1])
    checkers.on_stable(LIFE, 0, 2, list(STORES))
    assert broken(checkers) == []
    checkers.on_stable(LIFE, 2, 3, list(STORES))
    assert broken(checkers) == ["S1"]


def test_a_stable_number_is_of_one_life() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    checkers.on_life(NEXT, 3)
    assert broken(checkers) == []
    store(checkers, 2, 3, life=NEXT)
    checkers.on_stable(NEXT, 2, 3, list(STORES))
    assert broken(checkers) == ["S2"]
    checkers.on_life(NEXT + 1, 2)
    assert broken(checkers) == ["S2", "S2"]


@attrs.define
class Process:
    """Counts on RegID 50 at store 0."""

    name: str
    alive: bool = True
    frozen: bool = False

    def registrations(self) -> list[RegistrationStatus]:
        held = Registration(register(reg_id=50), "store0:1", RegistrationTimes(), RegistrationState.REGISTERED)
        away = attrs.evolve(held, state=RegistrationState.UNRESPONSIVE)
        return [RegistrationStatus.of(held), RegistrationStatus.of(away)]


def test_a_reg_id_has_one_live_holder() -> None:
    checkers = world()
    ours = Process("ours")
    checkers.clients += [ours, Process("ended", alive=False), Process("stopped", frozen=True)]
    checkers.on_registered(ours, 0, 50)
    checkers.clients.append(Process("other"))
    checkers.on_registered(ours, 0, 51)
    checkers.on_registered(ours, 1, 50)
    assert broken(checkers) == []
    checkers.on_registered(ours, 0, 50)
    assert broken(checkers) == ["R1"]


def test_what_machines_drop_is_counted() -> None:
    checkers = world()
    checkers.on_oddity(Oddity("late-ack", "late"))
    checkers.on_oddity(Wakeup())
    assert (checkers.facts.counts["late-ack"], broken(checkers)) == (1, [])


@pytest.mark.rows("P-549")
def test_a_proxy_counts_as_the_newest_life() -> None:
    checkers = world()
    checkers.on_proxy(NEXT)
    assert (checkers.facts.order, checkers.facts.stand_ins) == ({LIFE: 0, NEXT: 0}, [NEXT])


@pytest.mark.parametrize(("left", "found"), [(2, []), (1, ["S3"])])
def test_in_the_end_what_is_stable_is_at_a_quorum(left: int, found: list[str]) -> None:
    checkers = world()
    stable(checkers, 0, 1)
    for name in STORES[left:]:
        checkers.facts.disks[name].durable.clear()
    checkers.at_the_end()
    assert broken(checkers) == found
    checkers.facts.farewell = True
    checkers.at_the_end()
    assert broken(checkers) == found


def test_what_a_lost_disk_had_may_be_called_stable_late() -> None:
    checkers = world()
    store(checkers, 0, 1, STORES[:2])
    checkers.facts.on_lost(STORES[0], disk=True)
    checkers.facts.disks[STORES[0]].wipe()
    checkers.on_stable(LIFE, 0, 1, list(STORES))
    assert broken(checkers) == []
    assert list(checkers.facts.excused[LIFE]) == [(0, 1)]
