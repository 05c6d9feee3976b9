"""A receiver-paced repository: what stays until all have consumed it, and when acknowledgements are withheld."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import MessagesDropped
from stablecast.core.protocol.messages import LateJoinInfo, LateJoinRequest, Pace, RetransmitRequest, Role, StableAck
from stablecast.core.protocol.repairs import Repair
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from tests.core.drivers import REPOSITORY_CONFIG, RepositoryDriver
from tests.core.samples import LIFE, drain, events, sends
from tests.support.invariants import check_invariants

CLIENT = fx.Client(
    Role.SOURCE, 50, 2, "topic", 0, LIFE, 0, "source:1", "stream:1", 0, 0, -1, ((LIFE, 5),), lives_term=2
)
PACED = Terms(pace=Pace.RECEIVERS, size_limit=1000, disk_limit=1000, flight_bytes=100)


class PacedDriver(RepositoryDriver):
    """A receiver-paced repository and what its receivers acknowledged."""

    def __init__(self, **changes: Any) -> None:
        repairs = changes.pop("repairs", Repair.ALL)
        super().__init__(terms=attrs.evolve(PACED, **changes), repairs=repairs)
        self.consumed(-1)

    def consumed(self, *numbers: int, pace: Pace = Pace.RECEIVERS) -> None:
        client = fx.Client(Role.RECEIVER, 70, 0, "topic", 0, LIFE, 50, "a:1", "", 0, 0, -1, (), pace=pace)
        receivers = [attrs.evolve(client, acknowledged=number) for number in numbers]
        self.machine.on_receivers(receivers, self.tickets, 0, self.out)
        check_invariants(self.machine)

    def reclaimed(self) -> list[int]:
        return [effect.number for effect in drain(self.out) if isinstance(effect, fx.Reclaim)]


@pytest.mark.rows("P-012", "P-563")
def test_a_paced_repository_keeps_what_some_receiver_has_not_consumed() -> None:
    shop = PacedDriver()
    shop.data(0, 10)
    shop.sync()
    drain(shop.out)
    shop.consumed(7, 4)
    assert shop.reclaimed() == [5]
    assert shop.machine.available(0, 99) == [(5, 10)]
    shop.consumed(7)
    assert shop.reclaimed() == [8]


def test_receivers_that_do_not_pace_do_not_count() -> None:
    shop = RepositoryDriver()
    shop.data(0, 10)
    drain(shop.out)
    shop.machine.on_receivers([], shop.tickets, 0, shop.out)
    assert shop.out == []


DOCUMENTED = Repair.ALL & ~Repair.PACED


@pytest.mark.rows("P-572")
@pytest.mark.parametrize("numbers", [(), (9,)])
def test_messages_that_all_consumed_are_not_kept(numbers: tuple[int, ...]) -> None:
    """C-33: they were faster than the disk, or there is nobody; documented, both are acknowledged at once."""
    shop = PacedDriver(repairs=DOCUMENTED)
    shop.consumed(*numbers)
    shop.data(0, 5)
    assert [type(effect) for effect in shop.out] == [fx.Discard, fx.Reclaim, fx.Send]
    assert shop.acks() == [(0, 4)]
    shop.data(0, 5)
    assert shop.acks() == [(0, 4)]
    assert shop.machine.newest == 4


@pytest.mark.parametrize("numbers", [(), (9,)])
def test_messages_released_unwritten_are_acknowledged_when_that_is_synced(numbers: tuple[int, ...]) -> None:
    """T19; formal design, 7.8: a crash of the store and of the source would have its number used again."""
    shop = PacedDriver()
    shop.consumed(*numbers)
    shop.data(0, 5)
    assert [type(effect) for effect in shop.out] == [fx.Discard, fx.Reclaim]
    shop.data(0, 5)
    assert shop.acks() == []
    shop.sync()
    assert shop.acks() == [(0, 4)]
    shop.data(0, 5)
    assert shop.acks() == [(0, 4)]
    assert shop.machine.newest == 4


@pytest.mark.rows("P-577")
@pytest.mark.parametrize(("changes", "at_once"), [({"ack_on_reception": True}, True), ({}, False)])
def test_releases_in_memory_need_no_sync(changes: dict[str, Any], at_once: bool) -> None:
    shop = PacedDriver(**changes)
    shop.consumed()
    shop.data(0, 5)
    assert bool(shop.acks()) is at_once


def test_another_life_is_told_nothing_of_what_went_before_it() -> None:
    shop = PacedDriver()
    shop.consumed()
    shop.data(0, 5)
    shop.machine.begin_life(LIFE + 1, "source:1", 2)
    shop.sync()
    assert shop.acks() == []
    assert not shop.machine.acks.owed


def test_a_life_that_has_not_said_where_it_begins_is_owed_nothing() -> None:
    """The released messages are those of a former life."""
    shop = PacedDriver()
    shop.data(0, 5)
    shop.machine.begin_life(LIFE + 1, "source:1", 2)
    shop.consumed()
    assert shop.reclaimed() == [5]
    assert not shop.machine.acks.owed


@pytest.mark.rows("P-578")
@pytest.mark.parametrize(("repairs", "at_once"), [(DOCUMENTED, True), (Repair.ALL, False)])
def test_messages_consumed_before_their_write_are_never_written(repairs: Repair, at_once: bool) -> None:
    """T19: and acknowledged, at once or when its end is synced."""
    shop = PacedDriver(write_delay_ns=10, repairs=repairs)
    shop.data(0, 5)
    shop.consumed(2)
    assert (shop.acks() == [(0, 2)]) is at_once
    shop.sync()
    assert (shop.acks() == [(0, 2)]) is not at_once
    shop.tick(10)
    assert [(w.first, w.last) for w in shop.out if isinstance(w, fx.PersistCached)] == [(3, 4)]
    shop.sync()
    assert shop.acks() == [(3, 4)]


@pytest.mark.rows("P-577", "P-591", "P-842")
def test_acknowledgement_on_reception_writes_nothing() -> None:
    shop = PacedDriver(ack_on_reception=True)
    shop.data(0, 5)
    assert [type(effect) for effect in shop.out] == [fx.CacheMessages, fx.Send]
    assert shop.acks() == [(0, 4)]


@pytest.mark.rows("P-566")
def test_a_resend_of_what_is_withheld_is_not_acknowledged() -> None:
    """C-32."""
    shop = PacedDriver()
    shop.data(0, 10, size=100)
    shop.sync()
    assert shop.acks() == []
    shop.data(4, 2, recovered=True, proactive=True)
    assert shop.acks() == []
    shop.consumed(0)
    assert shop.acks() == [(0, 0), (1, 9)]


@pytest.mark.rows("P-013")
def test_a_full_paced_repository_asks_again_for_what_it_refused() -> None:
    """Nothing is lost; whoever overran it, its source or that source's next life, sends it again."""
    shop = PacedDriver()
    shop.data(0, 10, size=100)
    shop.data(10, 1, size=100)
    assert MessagesDropped(50, 10, 10) in events(shop.out)
    assert shop.machine.filling.paused
    shop.sync()
    assert shop.asked(LateJoinRequest) == []
    shop.tick(1000)
    assert shop.out == []
    shop.consumed(3)
    assert shop.asked(LateJoinRequest) == [LateJoinRequest(LIFE, 50, "store:1")]
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 10, 10), 0, shop.out)
    shop.data(10, 1, size=100, recovered=True)
    shop.sync()
    assert shop.machine.acked == 11


def test_as_documented_what_a_full_paced_repository_refused_is_lost() -> None:
    """Formal design, 7.8: without the repair; and withheld acknowledgements wait for new data."""
    shop = PacedDriver(repairs=Repair.ALL & ~Repair.PACED)
    shop.data(0, 10, size=100)
    shop.data(10, 1, size=100)
    assert shop.machine.filling.lost == RangeSet([(10, 11)])
    shop.sync()
    shop.consumed(5)
    assert shop.acks() == [(0, 5)]
    shop.data(11, 1)
    shop.sync()
    assert shop.acks() == [(6, 9), (11, 11)]


def test_messages_for_non_blocking_receivers_go_without_room() -> None:
    """T18: as much as a flight needs, and no more."""
    shop = PacedDriver()
    shop.consumed(-1, pace=Pace.NON_BLOCKING)
    shop.data(0, 9, size=100)
    shop.sync()
    assert shop.acks() == [(0, 8)]
    shop.data(9, 1, size=100)
    assert shop.reclaimed() == [1]
    shop.sync()
    assert shop.acks() == [(9, 9)]


def test_a_paced_repository_is_found_as_far_as_it_was_freed() -> None:
    """Formal design, 7.8: the record says so, whatever the journal kept; what is withheld is looked at again."""
    machine = Repository.recover(REPOSITORY_CONFIG, attrs.evolve(CLIENT, freed=7), 0, PACED)
    machine.restore(5, 12, 700)
    assert (machine.trail, machine.acked, machine.available(0, 99)) == (7, 7, [(7, 12)])
    out = list[fx.Effect]()
    machine.acknowledge_all(0, out)
    assert [(m.first, m.last) for _, m in sends(out) if isinstance(m, StableAck)] == [(5, 6), (7, 11)]


@pytest.mark.rows("P-585")
def test_messages_consumed_before_a_new_life_resumes_are_not_acknowledged() -> None:
    """Receivers of the life before go on consuming."""
    shop = PacedDriver()
    shop.data(0, 10, size=100)
    shop.sync()
    drain(shop.out)
    shop.machine.begin_life(9, "source:1", 2)
    shop.consumed(5)
    assert [type(effect) for effect in shop.out] == [fx.Reclaim]


MOVES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["send", "round", "round"]), st.integers(1, 4)),
        st.tuples(st.just("sync"), st.just(0)),
        st.tuples(st.just("consume"), st.integers(0, 1)),
        st.tuples(st.just("write"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    min_size=10,
    max_size=40,
)


@pytest.mark.rows("P-012", "P-013", "P-566", "P-580")
@given(MOVES, st.sampled_from([0, 5]), st.booleans(), st.booleans())
def test_a_source_that_keeps_its_flight_loses_nothing(
    moves: list[tuple[str, int]], delay: int, in_memory: bool, restarts: bool
) -> None:
    """A flight of four messages, room for ten, two receivers, one of them idle at times.

    Without restarts nothing is ever refused; with them what is refused is asked for again. What is acknowledged is
    synced or consumed by all, and when everybody has consumed everything, everything is acknowledged.
    """
    shop = PacedDriver(flight_bytes=400, write_delay_ns=0 if in_memory else delay, ack_on_reception=in_memory)
    machine, acked, consumed, sent, life = shop.machine, RangeSet(), [-1, -1], 0, LIFE
    shop.consumed(*consumed)
    resumed = 0
    for now, (move, number) in enumerate(moves):
        match move:
            case "send" | "round":
                for n in range(sent, min(sent + number, acked.contiguous_from(resumed) + 4)):
                    shop.data(n, 1, now=now, size=100)
                    sent = n + 1
                if move == "round":
                    shop.sync(now)
            case "sync":
                shop.sync(now)
            case "write":
                shop.tick(now)
            case "consume":
                consumed[number] = min(machine.newest, consumed[number] + 3)
                shop.consumed(*consumed)
            case _ if restarts:
                life, resumed, sent, acked = life + 1, machine.newest + 1, machine.newest + 1, RangeSet()
                machine.begin_life(life, "source:1", 2)
                shop.inform(resumed, resumed - 1, now)
        assert machine.dropped == 0 or restarts
        assert not machine.filling.lost
        assert machine.window.kept.payload_bytes <= 1000
        everybody = min(consumed) + 1
        for first, last in shop.acks():
            acked.add(first, last + 1)
            assert all(n < everybody or n in machine.window.synced for n in range(first, last + 1))
    for now in range(100, 200, 10):
        consumed = [machine.newest, machine.newest]
        shop.consumed(*consumed)
        shop.tick(now)
        if machine.filling.asked_at is not None:
            machine.on_late_join(LateJoinInfo(life, 50, resumed, sent - 1), now, shop.out)
        for first, last in [(m.first, m.last) for _, m in sends(shop.out) if isinstance(m, RetransmitRequest)]:
            for n in range(first, last + 1):
                shop.data(n, 1, now=now, size=100, recovered=True)
        shop.sync(now)
        for first, last in shop.acks():
            acked.add(first, last + 1)
    assert acked.contiguous_from(resumed) == sent


@pytest.mark.rows("P-564")
def test_a_store_released_nothing_that_it_never_had() -> None:
    """C-34: a new receiver begins behind the trail; what a life sent without us is at other stores."""
    for paced, trail in ((True, 0), (False, 8)):
        shop = PacedDriver() if paced else RepositoryDriver()
        shop.machine.begin_life(9, "new:1", 1)
        assert shop.inform(8, 7, incarnation=9) == 8
        assert shop.machine.trail == trail
        shop.machine.begin_life(10, "newer:1", 1)
        shop.data(8, 2)
        assert shop.inform(0, -1, incarnation=10) == 0
        assert shop.machine.trail == 0


def test_the_trail_of_a_paced_repository_comes_back_with_a_life_that_resumes_below() -> None:
    """Formal design, 7.8: what was let go there was of a dead tail."""
    shop = PacedDriver()
    shop.data(0, 10)
    shop.sync()
    shop.consumed(9)
    assert shop.machine.trail == 10
    shop.machine.begin_life(9, "new:1", 1)
    assert shop.inform(4, 3, incarnation=9) == 4
    assert shop.machine.trail == 4
