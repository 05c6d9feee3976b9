"""Excuses for lost disks: each world needs one, and a fault that matters is still found there."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from stablecast.core.protocol.messages import Pace, Role, SourceInfo, StoreEntry
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.store_registrations import StoreRegistrations
from stablecast.core.store.ack_batch import AckBatch
from stablecast.core.store.proxy_election import Election
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw
from stablecast.lab.sim.setup import STORES
from tests.adapters.lab.sim.checker_world import (
    LIFE,
    READER,
    STREAM,
    begin,
    broken,
    client,
    stable,
    world,
)
from tests.adapters.lab.sim.test_found import FOUND, NO_MARKS
from tests.adapters.lab.sim.test_source_checkers import Process

begin_at = DeliveryWindow.begin


def begin_too_late(window: DeliveryWindow, low: int, out: list[Any]) -> None:
    begin_at(window, low + 1, out)


def nothing(*_: object) -> None:
    """Stand for a function that does nothing."""


PLANTED: dict[str, tuple[int, type, str, Callable[..., None], str]] = {
    "given up behind others": (2050, AckBatch, "add", nothing, "L1"),
    "an undeclared copy of a disk that had lost messages before": (2153, Repository, "lack", nothing, "S3"),
    "a start above messages that stores still lack": (1217, DeliveryWindow, "begin", begin_too_late, "D1"),
    "a proxy that stays": (2104, Repository, "lack", nothing, "S3"),
    "no vote about a source that stays away": (310, AckBatch, "add", nothing, "L1"),
    "an earlier life in a copy": (2662, Registry, "delete", nothing, "L1"),
    "a proxy of a store that heard of no other": (3772, AckBatch, "add", nothing, "L1"),
    "released by the only store that kept it": (1158, AckBatch, "add", nothing, "L1"),
    "released at one of the stores": (91, Repository, "lack", nothing, "S3"),
}
"""By excuse: a seed that needs it, a fault, and the rule that the fault still breaks there."""


@pytest.mark.no_cover
@pytest.mark.parametrize("excuse", PLANTED)
def test_no_excuse_hides_a_loss_that_matters(monkeypatch: pytest.MonkeyPatch, excuse: str) -> None:
    seed, of, name, fault, rule = PLANTED[excuse]
    assert run(draw(seed, wipe=True)).violations == ()
    monkeypatch.setattr(of, name, fault)
    assert rule in {violation.rule for violation in run(draw(seed, wipe=True)).violations}


def test_an_undeclared_copy_excuses_no_grant_of_another_store() -> None:
    checkers = world()
    ours, other = Process("ours"), Process("other")
    checkers.clients += [ours, other]
    checkers.facts.undeclared.add(STORES[0])
    checkers.on_registered(ours, 0, 50)
    assert broken(checkers) == []
    checkers.facts.undeclared = {STORES[1]}
    checkers.on_registered(ours, 0, 50)
    assert broken(checkers) == ["R1"]


@pytest.mark.parametrize(("lost", "excused"), [(True, [(0, 2)]), (False, [])])
def test_the_release_of_messages_is_excused_only_if_disks_lost_them(lost: bool, excused: list[tuple[int, int]]) -> None:
    """A paced store counts the receiver's acknowledgements; without the lost disk a quorum of copies is left."""
    checkers = world(paced=True)
    for name in STORES:
        known = client(Role.RECEIVER, 70, Pace.RECEIVERS, has_acknowledged=True)
        checkers.stores.on_start(name, [client(Role.SOURCE, STREAM), known])
    stable(checkers, 0, 2)
    begin(checkers)
    checkers.receivers.on_consumed(READER, LIFE, 0, 2)
    if lost:
        checkers.stores.on_wiped(STORES[2])
        checkers.facts.disks[STORES[2]].wipe()
    checkers.stores.on_reclaim(STORES[0], STREAM, 2)
    assert list(checkers.receivers.ledgers[READER].excused) == excused


def test_stores_that_an_sri_names_again_are_no_strangers() -> None:
    checkers = world()
    entries = tuple(StoreEntry(index, 0, "", 1, 1) for index in range(2))
    told = SourceInfo(LIFE, "sim", 1, 0, 0, "", (3,), False, entries)
    for name in STORES[:2]:
        checkers.stores.on_read(name, told, 0)
        checkers.stores.on_synced(name, 0)
    checkers.stores.on_wiped(STORES[0])
    assert checkers.stores.strangers(list(STORES[:2]))
    checkers.stores.on_read(STORES[0], told, 2)
    checkers.stores.on_synced(STORES[0], 1)
    assert checkers.stores.strangers(list(STORES[:2]))
    checkers.stores.on_start(STORES[0], [])
    checkers.stores.on_synced(STORES[0], 2)
    assert checkers.stores.strangers(list(STORES[:2]))
    checkers.stores.on_read(STORES[0], told, 1)
    checkers.stores.on_synced(STORES[0], 1)
    assert not checkers.stores.strangers(list(STORES[:2]))


@pytest.mark.no_cover
def test_a_store_that_does_not_write_whom_an_announcement_names_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the time to sync that before it crashes, so its proxy could meet the others."""
    found = FOUND["proxies_behind_a_full_disk"]
    crash = Fault(3520, Kind.KILL, "store0", 48, amount=1)
    later = attrs.evolve(found, faults=(*found.faults[:-1], crash))
    assert run(later).violations == ()
    learn = Registry._learn_stores

    def learn_only(registry: Registry, *what: Any) -> bool:
        learn(registry, *what)
        return False

    monkeypatch.setattr(Registry, "_learn_stores", learn_only)
    assert {violation.rule for violation in run(later).violations} == {"E8"}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["proxy_that_won_and_is_over", "last_breath_of_a_source"])
def test_an_election_that_never_follows_a_proxy_which_is_over_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world waits for the next proxy, and there is none."""
    on_over, over = Election.on_over, []

    def end(election: Election, *what: Any) -> None:
        over.append(election)
        on_over(election, *what)

    monkeypatch.setattr(Election, "on_over", end)
    monkeypatch.setattr(Election, "informed", lambda *_: not over)
    assert {violation.rule for violation in run(FOUND[name]).violations} == {"E8"}


@pytest.mark.no_cover
def test_a_receiver_that_passes_over_what_a_store_has_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that lack a message because disks were lost excuse no receiver, and no report of its loss."""
    for what, fault in NO_MARKS.items():
        monkeypatch.setattr(f"stablecast.{what}", fault)
    found = run(FOUND["return_between_stores_that_lack_messages"]).violations
    assert {violation.rule for violation in found} == {"D1", "S3"}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("of", "name", "fault", "rule"), [(AckBatch, "add", nothing, "L1"), (DeliveryWindow, "begin", begin_too_late, "D1")]
)
def test_a_life_behind_an_undeclared_copy_excuses_nothing_of_the_next_life(
    monkeypatch: pytest.MonkeyPatch, of: type, name: str, fault: Callable[..., None], rule: str
) -> None:
    monkeypatch.setattr(of, name, fault)
    assert rule in {violation.rule for violation in run(FOUND["life_before_a_copy"]).violations}


@pytest.mark.no_cover
def test_a_receiver_that_waits_for_a_moved_store_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world has time for two waits, and not for one without an end."""
    found = attrs.evolve(FOUND["turn_behind_a_moved_store"], seed=0)  # Delays in which the receiver needs the wait.
    assert run(found).violations == ()
    monkeypatch.setattr(StoreRegistrations, "impatient", property(lambda _: False, nothing))
    assert {violation.rule for violation in run(found).violations} == {"L1"}


@pytest.mark.no_cover
def test_a_store_that_sends_nothing_is_found_beside_one_that_is_away_for_a_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The damage excuses the receiver alone. Without it a store of the life has the message, and nobody is excused."""
    found = FOUND["damaged_beside_a_store_of_another_life"]
    whole = attrs.evolve(found, faults=found.faults[:-1])
    assert run(whole).violations == ()
    monkeypatch.setattr(Repository, "available", lambda *_: [])
    assert {violation.rule for violation in run(found).violations} == {"S3"}
    assert {violation.rule for violation in run(whole).violations} == {"L1"}
