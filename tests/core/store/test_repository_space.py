"""The room of a repository: kinds, limits, losses, delays."""

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import LostAtStore, MessagesDropped
from stablecast.core.protocol.inputs import Data, Lost
from stablecast.core.protocol.messages import LateJoinInfo, LateJoinRequest, Role, StableAck
from stablecast.core.protocol.settings import RepositoryType
from stablecast.core.store.extents import OVERHEAD_BYTES
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from stablecast.core.store.sync_tickets import SyncTickets
from tests.core.drivers import REPOSITORY_CONFIG, RepositoryDriver
from tests.core.samples import LIFE, drain, events, sends
from tests.support.invariants import check_invariants

MEMORY = Terms(kind=RepositoryType.MEMORY)


@pytest.mark.rows("P-101", "P-108")
def test_state_only_keeps_nothing_and_acknowledges_nothing() -> None:
    """The numbers it saw are remembered, so that a source that returns goes on behind them."""
    shop = RepositoryDriver(terms=Terms(kind=RepositoryType.NO_CACHE))
    assert not shop.data(0, 5)
    shop.data(7, 3)
    shop.data(5, 1)
    assert {type(effect) for effect in shop.out} == {fx.Discard}
    assert (shop.machine.newest, shop.machine.available(0, 9)) == (9, [])
    shop.machine.on_lost(Lost(LIFE, 10, 2), 0, drain(shop.out))
    shop.inform(0, 20)
    shop.machine.acknowledge_all(0, shop.out)
    assert shop.out == []


@pytest.mark.rows("P-102", "P-576")
def test_in_memory_a_message_is_acknowledged_at_its_reception() -> None:
    shop = RepositoryDriver(terms=MEMORY)
    assert not shop.data(0, 5)
    assert fx.CacheMessages(50, LIFE, 1, 0, 5, 0, True) in shop.out
    assert shop.acks() == [(0, 4)]
    shop.data(6, 2)
    assert shop.acks() == []
    shop.data(5, 1)
    assert shop.acks() == [(5, 7)]


@pytest.mark.rows("P-110", "P-114", "P-440")
def test_released_messages_are_not_offered_but_acknowledged_again() -> None:
    """It was stable; its hole never was, and is passed over."""
    shop = RepositoryDriver(terms=attrs.evolve(MEMORY, size_threshold=4 * OVERHEAD_BYTES))
    shop.data(0, 3)
    shop.data(5, 5)
    assert shop.acks() == [(0, 2), (5, 9)]
    assert (shop.machine.trail, shop.machine.available(0, 99)) == (6, [(6, 10)])
    assert shop.machine.filling.lost == RangeSet([(3, 5)])
    for first, again in ((0, [(0, 2)]), (3, [(5, 5)]), (6, [(6, 8)])):
        shop.data(first, 3)
        assert shop.acks() == again


@pytest.mark.rows("P-118", "P-827")
def test_beyond_the_disk_limit_the_oldest_are_reclaimed() -> None:
    shop = RepositoryDriver(terms=Terms(disk_limit=10 * OVERHEAD_BYTES))
    shop.data(0, 8)
    shop.sync()
    shop.data(8, 4)
    assert [effect.number for effect in shop.out if isinstance(effect, fx.Reclaim)] == [2]
    assert shop.machine.trail == 2


@pytest.mark.rows("P-115", "P-822")
def test_a_full_memory_drops_newcomers_and_goes_on_behind_them() -> None:
    """C-31: dropped, counted, told, never acknowledged; the source that sends them again is refused."""
    shop = RepositoryDriver(terms=attrs.evolve(MEMORY, size_limit=5 * OVERHEAD_BYTES))
    shop.data(0, 5)
    shop.data(5, 2)
    assert MessagesDropped(50, 5, 6) in events(shop.out)
    assert shop.acks() == [(0, 4)]
    assert (shop.machine.dropped, shop.machine.newest, shop.machine.acked) == (2, 4, 7)
    shop.data(5, 2, proactive=True, recovered=True)
    assert [message for _, message in sends(drain(shop.out))] == [StableAck(2, LIFE, 5, 6, nack=True)]


@pytest.mark.rows("P-117", "P-822")
def test_a_run_that_is_larger_than_the_room_becomes_stable_part_by_part() -> None:
    """The store takes what fits, and asks for the rest once that is on disk: the documents refuse, and lose nothing."""
    shop = RepositoryDriver(terms=Terms(size_limit=5 * OVERHEAD_BYTES))
    shop.data(0, 20)
    assert shop.machine.newest == 4
    shop.sync()
    while (first := shop.machine.acked) < 20:
        assert any(isinstance(message, LateJoinRequest) for _, message in sends(drain(shop.out)))
        shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 0, 19), 0, shop.out)
        shop.data(first, 20 - first, recovered=True)
        shop.sync()
        assert shop.machine.acked > first
    assert list(shop.machine.window.synced) == [(0, 20)]
    assert not shop.machine.filling.lost
    check_invariants(shop.machine)


@pytest.mark.rows("P-440", "P-441")
def test_lost_messages_are_not_acknowledged_when_the_source_returns() -> None:
    """The removed messages were stable, but for its hole."""
    shop = RepositoryDriver(terms=attrs.evolve(MEMORY, size_threshold=4 * OVERHEAD_BYTES))
    shop.data(0, 3)
    shop.data(5, 5)
    shop.machine.begin_life(LIFE, "source:1", 2)
    drain(shop.out)
    shop.machine.acknowledge_all(0, shop.out)
    assert shop.acks() == [(0, 2), (5, 5), (6, 9)]
    shop.data(2, 3, proactive=True, recovered=True)
    assert [message for _, message in sends(drain(shop.out))] == [
        StableAck(2, LIFE, 3, 4, nack=True),
        StableAck(2, LIFE, 2, 2),
    ]


@pytest.mark.rows("P-440", "P-441")
def test_after_a_restart_nobody_knows_whether_what_had_to_go_was_ever_stored() -> None:
    """It is not acknowledged, and its source need not send it again."""
    client = fx.Client(
        Role.SOURCE, 50, 2, "topic", 0, LIFE, 0, "source:1", "stream:1", 0, 0, -1, ((LIFE, 0),), lives_term=1
    )
    machine, out, tickets = Repository.recover(REPOSITORY_CONFIG, client, 6), list[fx.Effect](), SyncTickets()
    machine.restore(6, 10, 0)
    machine.begin_life(LIFE, "source:1", 2)
    machine.acknowledge_all(0, out)
    assert [message for _, message in sends(drain(out))] == [StableAck(2, LIFE, 6, 9)]
    machine.on_data(Data(LIFE, LIFE, 2, 3, 0, True, 1), tickets, 0, out)
    assert drain(out) == [fx.Discard(1)]
    machine.on_data(Data(LIFE, LIFE, 2, 3, 0, True, 1, proactive=True), tickets, 0, out)
    assert [message for _, message in sends(out)] == [StableAck(2, LIFE, 2, 4, nack=True)]
    check_invariants(machine)


@pytest.mark.rows("P-441")
def test_a_proactive_run_is_taken_where_it_is_not_lost() -> None:
    """T16."""
    shop = RepositoryDriver()
    shop.data(4, 1)
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 2, 4), 0, drain(shop.out))
    drain(shop.out)
    shop.data(0, 4, proactive=True, recovered=True)
    assert StableAck(2, LIFE, 0, 1, nack=True) in [message for _, message in sends(shop.out)]
    assert [(w.first, w.count) for w in shop.out if isinstance(w, fx.PersistMessages)] == [(2, 2)]


def test_messages_that_the_transport_lost_are_requested_at_once() -> None:
    shop = RepositoryDriver()
    shop.machine.on_lost(Lost(LIFE, 0, 3), 0, shop.out)
    assert shop.asked(LateJoinRequest) == [LateJoinRequest(LIFE, 50, "store:1")]
    RepositoryDriver(resume=None).machine.on_lost(Lost(LIFE, 0, 3), 0, shop.out)
    assert shop.out == []


@pytest.mark.rows("P-917")
@pytest.mark.parametrize(("count", "burst"), [(3, True), (11, False)])
def test_a_burst_is_lost_at_once(count: int, burst: bool) -> None:
    """T30: as the transport says so, or by its length."""
    shop = RepositoryDriver(burst=10)
    shop.machine.on_lost(Lost(LIFE, 0, count, burst), 0, shop.out)
    assert events(shop.out) == [LostAtStore(50, 0, count - 1, burst=True)]
    assert sends(shop.out) == []
    shop.data(count, 1)
    shop.sync()
    assert shop.acks() == [(count, count)]
    shop.machine.on_lost(Lost(LIFE, count, 1, burst=True), 0, shop.out)
    assert events(shop.out) == []


def test_a_gap_that_is_a_burst_is_not_asked_for() -> None:
    """T30."""
    shop = RepositoryDriver(burst=10)
    shop.data(0, 1)
    shop.data(12, 1)
    assert LostAtStore(50, 1, 11, burst=True) in events(shop.out)
    shop.sync()
    assert shop.acks() == [(0, 0), (12, 12)]


@pytest.mark.rows("P-839", "P-840")
def test_acknowledgements_are_collected() -> None:
    shop = RepositoryDriver(terms=Terms(ack_minimum=5, ack_interval_ns=100))
    shop.data(0, 3)
    shop.sync(now=7)
    assert (shop.acks(), shop.machine.next_timeout()) == ([], 107)
    shop.tick(107)
    assert (shop.acks(), shop.machine.next_timeout()) == ([(0, 2)], None)


@pytest.mark.rows("P-579", "P-843")
def test_delayed_writes_are_acknowledged_when_they_are_synced() -> None:
    shop = RepositoryDriver(terms=Terms(write_delay_ns=10))
    shop.data(0, 3)
    assert shop.machine.next_timeout() == 10
    shop.tick(10)
    shop.sync()
    assert shop.acks() == [(0, 2)]


def test_after_the_resume_point_of_a_new_life_what_was_being_written_is_not_acknowledged() -> None:
    shop = RepositoryDriver()
    shop.data(0, 10)
    shop.machine.begin_life(9, "source:1", 2)
    shop.inform(5, 4)
    shop.sync()
    assert shop.acks() == []
    assert list(shop.machine.window.synced) == [(0, 5)]


@pytest.mark.rows("P-113")
def test_an_old_life_may_have_to_go_before_the_new_one_resumes() -> None:
    """Nobody is told, for the new life has nothing to do with it."""
    shop = RepositoryDriver(terms=attrs.evolve(MEMORY, age_ns=10))
    shop.data(0, 3)
    drain(shop.out)
    shop.machine.begin_life(9, "source:1", 2)
    assert shop.machine.next_timeout() == 10
    shop.tick(10)
    assert shop.out == [fx.Reclaim(1, 50, 3)]
    shop.machine.on_late_join(LateJoinInfo(9, 50, 0, 0), 0, drain(shop.out))
    assert shop.out == []
