"""The checkers of the stores: what each of them says of the least that breaks its rule."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol.messages import Pace, Role, SourceInfo, StoreEntry
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.store.receiver_pacing import ReceiverPacing
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.setup import STORES
from tests.adapters.lab.sim.checker_world import (
    LIFE,
    NEXT,
    READER,
    STREAM,
    begin,
    broken,
    client,
    stable,
    store,
    world,
)
from tests.adapters.lab.sim.test_found import FOUND


@pytest.mark.rows("P-549")
def test_a_proxy_is_no_life_of_its_own() -> None:
    checkers = world()
    checkers.on_proxy(NEXT)
    assert checkers.facts.order == {LIFE: 0, NEXT: 0}
    told = SourceInfo(NEXT, "sim", 1, 0, 0, "", (3,), False, (StoreEntry(1, 0, "", 1, 1),))
    for name, info in ((STORES[0], told), (STORES[1], attrs.evolve(told, incarnation=LIFE))):
        checkers.stores.on_info(name, info)
        checkers.stores.on_read(name, info, 0)
        checkers.stores.on_synced(name, 0)
    assert checkers.stores.heard_of == {STORES[0]: [], STORES[1]: [1]}
    assert checkers.stores.strangers([STORES[0], STORES[1]])
    assert not checkers.stores.strangers([STORES[1]])


def test_what_is_stable_is_not_cut_and_is_there_in_the_end() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    checkers.stores.on_cut(STORES[0], STREAM, 3)
    assert broken(checkers) == []
    checkers.stores.on_cut(STORES[0], STREAM, 2)
    assert broken(checkers) == ["S3"]
    for name in STORES[:2]:
        del checkers.facts.disks[name].durable[STREAM][2]
    checkers.at_the_end()
    assert broken(checkers) == ["S3", "S3"]
    checkers.facts.farewell = True
    checkers.at_the_end()
    assert len(broken(checkers)) == 2


@pytest.mark.rows("P-572")
@pytest.mark.parametrize(("acknowledged", "excused"), [(True, []), (False, [(0, 2)])])
def test_a_paced_store_owes_nothing_to_whom_no_quorum_knows(acknowledged: bool, excused: list[Any]) -> None:
    """A receiver that has not acknowledged begins as a new one, behind all that went."""
    checkers = world(paced=True)
    for name in STORES[:2]:
        known = client(Role.RECEIVER, 70, Pace.RECEIVERS, has_acknowledged=acknowledged)
        checkers.stores.on_start(name, [client(Role.SOURCE, STREAM), known])
    stable(checkers, 0, 2)
    begin(checkers)
    checkers.receivers.on_consumed(READER, LIFE, 0, 2)
    checkers.stores.on_reclaim(STORES[0], STREAM, 2)
    assert broken(checkers) == []
    assert list(checkers.receivers.ledgers[READER].excused) == excused


@pytest.mark.rows("P-566")
@pytest.mark.parametrize(("sizes", "excused"), [((2, 1), [(0, 2)]), ((3,), [])])
def test_a_paced_receiver_may_begin_again_where_it_was_forgotten(
    sizes: tuple[int, ...], excused: list[tuple[int, int]]
) -> None:
    """A group that forgot it suffices to register it anew, although another group still knows it."""
    checkers = world(paced=True, rules=GroupRules(sizes, Intragroup.QUORUM, Intergroup.ANY))
    known = client(Role.RECEIVER, 70, Pace.RECEIVERS, has_acknowledged=True)
    for name in STORES:
        checkers.stores.on_start(name, [client(Role.SOURCE, STREAM), known])
    stable(checkers, 0, 4)
    begin(checkers)
    checkers.stores.on_forget(STORES[2], Role.RECEIVER, 70)
    checkers.stores.on_reclaim(STORES[2], STREAM, 2)
    assert list(checkers.receivers.ledgers[READER].excused) == excused
    checkers.stores.on_client(STORES[2], known)
    checkers.receivers.on_consumed(READER, LIFE, 0, 4)
    checkers.stores.on_reclaim(STORES[2], STREAM, 4)
    assert list(checkers.receivers.ledgers[READER].excused) == excused


@pytest.mark.rows("P-566")
@pytest.mark.parametrize(("acknowledged", "excused"), [(False, [(0, 2)]), (True, [])])
def test_a_receiver_that_a_quorum_forgot_one_after_the_other_begins_as_a_new_one(
    acknowledged: bool, excused: list[tuple[int, int]]
) -> None:
    """The first store forgets it, deletes messages, and grants it a new RegID before the second one forgets it."""
    checkers = world(paced=True)
    known = client(Role.RECEIVER, 70, Pace.RECEIVERS, has_acknowledged=True)
    for name in STORES:
        checkers.stores.on_start(name, [client(Role.SOURCE, STREAM), known])
    stable(checkers, 0, 4)
    begin(checkers)
    checkers.stores.on_forget(STORES[0], Role.RECEIVER, 70)
    checkers.stores.on_reclaim(STORES[0], STREAM, 2)
    checkers.stores.on_client(STORES[0], attrs.evolve(known, has_acknowledged=acknowledged))
    assert list(checkers.receivers.ledgers[READER].excused) == []
    checkers.stores.on_forget(STORES[1], Role.RECEIVER, 70)
    assert list(checkers.receivers.ledgers[READER].excused) == excused


@pytest.mark.no_cover
def test_that_excuses_no_store_that_frees_messages_of_a_receiver_that_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: no receiver keeps a message."""
    monkeypatch.setattr(ReceiverPacing, "floor", lambda _, stop: stop)
    assert {violation.rule for violation in run(FOUND["forgotten_by_one_group"]).violations} == {"P2"}


def test_what_comes_again_behind_a_cut_is_there_again() -> None:
    """T4: a trail goes back with a cut; a store that forgets a source forgets all of it."""
    checkers = world()
    store(checkers, 0, 4)
    checkers.stores.on_reclaim(STORES[0], STREAM, 3)
    checkers.stores.on_reclaim(STORES[0], STREAM, 2)
    assert list(checkers.facts.gone[STORES[0]][LIFE]) == [(0, 3)]
    checkers.stores.on_cut(STORES[0], STREAM, 1)
    assert list(checkers.facts.gone[STORES[0]][LIFE]) == [(0, 1)]
    checkers.stores.on_forget(STORES[0], Role.SOURCE, STREAM)
    checkers.stores.on_cut(STORES[0], STREAM, 0)
    assert list(checkers.facts.gone[STORES[0]][LIFE]) == []
    assert checkers.stores.trails[STORES[0]] == {STREAM: 0}
