"""A repository against a twin that keeps a dict of messages."""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import HALF, MODULUS, wire
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import LateJoinInfo, LateJoinRequest, RetransmitRequest, Role
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryType
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from stablecast.core.store.sync_tickets import SyncTickets
from tests.core.drivers import REPOSITORY_CONFIG, RepositoryDriver
from tests.core.samples import LIFE, OLDER_LIFE, drain, sends
from tests.support.abstract_states import abstract
from tests.support.invariants import check_invariants

MEMORY = Terms(kind=RepositoryType.MEMORY)


def test_nothing_is_taken_before_the_resume_point_is_known() -> None:
    shop = RepositoryDriver(resume=None)
    assert not shop.data(0, 5)
    assert shop.out == [fx.Discard(1)]
    assert shop.inform(0, -1) == 0
    assert shop.data(0, 5)
    assert shop.inform(0, 4) is None


def test_only_synced_messages_are_acknowledged() -> None:
    shop = RepositoryDriver()
    shop.data(0, 5)
    assert drain(shop.out) == [fx.PersistMessages(1, 50, LIFE, 1, 0, 5, 0, True)]
    shop.sync()
    assert shop.acks() == [(0, 4)]


def test_messages_of_other_lives_or_from_below_are_refused() -> None:
    shop = RepositoryDriver(resume=5)
    assert not shop.data(5, 2, life=OLDER_LIFE)
    assert not shop.data(3, 4)
    assert [type(effect) for effect in shop.out] == [fx.Discard, fx.Discard]


def test_a_hole_holds_acknowledgements_back() -> None:
    shop = RepositoryDriver()
    shop.data(0, 5)
    shop.data(6, 4)
    shop.sync()
    assert shop.acks() == [(0, 4)]
    shop.data(5, 1)
    shop.sync()
    assert shop.acks() == [(5, 9)]


def test_a_run_is_written_in_parts_where_some_is_held() -> None:
    shop = RepositoryDriver()
    shop.data(3, 2)
    drain(shop.out)
    shop.data(0, 8)
    writes = [effect for effect in drain(shop.out) if isinstance(effect, fx.PersistMessages)]
    assert [(w.first, w.skip, w.count, w.done) for w in writes] == [(0, 0, 3, False), (5, 5, 3, True)]


def test_a_duplicate_is_acknowledged_again_and_stored_once() -> None:
    shop = RepositoryDriver()
    shop.data(0, 5)
    shop.sync()
    drain(shop.out)
    assert not shop.data(2, 2)
    assert fx.Discard(2) in shop.out
    assert shop.acks() == [(2, 3)]
    shop.machine.acknowledge_all(0, shop.out)
    assert shop.acks() == [(0, 4)]


def test_a_duplicate_that_is_not_synced_waits() -> None:
    shop = RepositoryDriver()
    shop.data(0, 5)
    drain(shop.out)
    shop.data(0, 5)
    assert shop.acks() == []


def test_nothing_is_acknowledged_to_a_life_without_resume_point() -> None:
    shop = RepositoryDriver(resume=None)
    shop.machine.acknowledge_all(0, shop.out)
    assert shop.out == []


def test_an_acknowledgement_spans_what_a_wire_number_can() -> None:
    shop = RepositoryDriver()
    shop.machine.held.add(0, MODULUS)
    shop.machine.on_synced(LIFE, 0, MODULUS, shop.tickets, 0, shop.out)
    drain(shop.out)
    shop.machine.acknowledge_all(0, shop.out)
    assert shop.acks() == [(HALF + 1, MODULUS - 1)]


def test_the_source_says_what_it_still_has() -> None:
    """A gap: the source is asked once, what it no longer has is lost, the rest is asked for."""
    shop = RepositoryDriver()
    shop.data(10, 1)
    assert shop.asked(LateJoinRequest) == [LateJoinRequest(LIFE, 50, "store:1")]
    shop.inform(0, 12)
    assert shop.asked(LateJoinRequest) == []
    shop.sync()
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 4, 12), 0, shop.out)
    assert [(m.by, m.first, m.last) for m in shop.asked(RetransmitRequest)] == [
        (Role.STORE, 4, 9),
        (Role.STORE, 11, 12),
    ]
    shop.data(4, 6, recovered=True)
    shop.sync()
    assert shop.acks() == [(4, 10)]
    assert shop.machine.filling.lost == RangeSet([(0, 4)])


def test_a_late_join_answer_that_nobody_waits_for_is_dropped() -> None:
    shop = RepositoryDriver()
    shop.data(10, 1)
    shop.machine.filling.asked_at = None
    drain(shop.out)
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 4, 12), 0, shop.out)
    assert shop.out == []


def test_questions_are_repeated_and_in_the_end_given_up() -> None:
    shop = RepositoryDriver()
    shop.data(3, 1)
    shop.sync()
    drain(shop.out)
    shop.tick(9)
    assert shop.out == []
    shop.tick(10)
    assert len(shop.asked(LateJoinRequest)) == 1
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 0, 3), 10, shop.out)
    for now in (20, 30, 40):
        shop.tick(now)
        assert shop.acks() == []
    shop.tick(50)
    assert shop.acks() == [(3, 3)]
    assert shop.machine.filling.lost == RangeSet([(0, 3)])


def test_a_message_that_comes_after_it_was_given_up_is_acknowledged() -> None:
    shop = RepositoryDriver()
    shop.data(3, 1)
    shop.sync()
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 3, 3), 0, shop.out)
    assert shop.acks() == [(3, 3)]
    shop.data(1, 1)
    shop.sync()
    assert shop.acks() == [(1, 1)]


def test_the_source_that_registers_again_may_have_what_was_given_up() -> None:
    shop = RepositoryDriver()
    shop.data(3, 1)
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 3, 3), 0, shop.out)
    shop.machine.begin_life(LIFE, "source:1", 2)
    drain(shop.out)
    shop.tick(1)
    assert len(shop.asked(LateJoinRequest)) == 1


def test_time_passes_harmlessly_before_the_resume_point_is_known() -> None:
    shop = RepositoryDriver(resume=None)
    shop.tick(1)
    assert shop.out == []
    assert abstract(shop.machine) == (LIFE, None, (), (), 0)


def test_a_new_life_cuts_back_what_an_older_one_left_above_its_resume_point() -> None:
    shop = RepositoryDriver()
    shop.data(0, 10)
    shop.data(10, 2)
    shop.tickets.waiting.pop()
    shop.sync()
    shop.machine.begin_life(9, "new:1", 1)
    assert shop.machine.available(0, 10) == []
    assert not shop.data(7, 1)
    shop.machine.on_synced(LIFE, 10, 12, shop.tickets, 0, shop.out)
    drain(shop.out)
    assert shop.inform(7, 6, incarnation=9) == 7
    assert fx.Cut(3, 50, 7) in shop.out
    shop.machine.on_synced(LIFE, 5, 9, shop.tickets, 0, shop.out)
    assert (shop.machine.newest, shop.machine.acks.source) == (6, "new:1")
    assert shop.machine.available(0, 10) == [(0, 7)]
    assert shop.machine.life.lives == [(LIFE, 0), (9, 7)]
    check_invariants(shop.machine)


def test_a_life_that_comes_back_finds_what_it_left() -> None:
    """Another life registered meanwhile and sent nothing."""
    shop = RepositoryDriver()
    shop.data(0, 10)
    shop.sync()
    shop.machine.begin_life(9, "other:1", 1)
    shop.machine.begin_life(LIFE, "source:1", 1)
    drain(shop.out)
    assert shop.inform(0, 9, lives=((LIFE, 0),)) == 10
    assert [effect for effect in shop.out if isinstance(effect, fx.Cut)] == []
    assert shop.machine.available(0, 10) == [(0, 10)]
    check_invariants(shop.machine)


def test_an_old_ticket_does_not_sync_cut_messages() -> None:
    """Sync first: a life sends its numbers again behind a cut. The older writes come before the cut on the disk."""
    shop = RepositoryDriver()
    shop.data(0, 5)
    shop.data(5, 5)
    written = shop.tickets.last
    shop.machine.begin_life(9, "other:1", 1)
    assert shop.inform(5, 4, incarnation=9) == 5
    shop.machine.begin_life(LIFE, "source:1", 2)
    shop.inform(0, 9, lives=((LIFE, 0),))
    shop.data(5, 5)
    drain(shop.out)
    shop.sync(ticket=written)
    assert shop.acks() == [(0, 4)]
    shop.sync()
    assert shop.acks() == [(5, 9)]


def test_a_life_that_comes_back_is_not_acknowledged_what_it_lost() -> None:
    """P1: another life registered meanwhile. As at a restart nobody remembers which of what went were lost."""
    shop = RepositoryDriver(terms=Terms(disk_limit=50))
    shop.data(0, 3)
    shop.data(5, 5)
    shop.sync()
    shop.machine.on_late_join(LateJoinInfo(LIFE, 50, 5, 9), 0, shop.out)
    shop.data(10, 4)
    shop.sync()
    assert shop.machine.trail == 10
    shop.machine.begin_life(9, "other:1", 1)
    shop.machine.begin_life(LIFE, "source:1", 2)
    drain(shop.out)
    shop.inform(0, 13, lives=((LIFE, 0),))
    shop.machine.acknowledge_all(0, shop.out)
    assert {number for first, last in shop.acks() for number in range(first, last + 1)} == {10, 11, 12, 13}


def test_a_life_that_was_missed_is_where_the_cut_goes() -> None:
    """Ours: life 7 sent 0 to 9. The source's: life 8 used 5 to 9 again, life 9 resumes at 10."""
    shop = RepositoryDriver()
    shop.data(0, 10)
    shop.sync()
    shop.machine.begin_life(9, "source:1", 2)
    drain(shop.out)
    assert shop.inform(10, 9, incarnation=9, term=3, lives=((LIFE, 0), (8, 5), (9, 10))) == 5
    assert shop.out == [fx.Cut(2, 50, 5)]
    assert shop.machine.available(0, 99) == [(0, 5)]
    assert (shop.machine.life.lives, shop.machine.life.term) == ([(LIFE, 0), (8, 5), (9, 10)], 3)


def test_an_empty_repository_begins_at_the_resume_point() -> None:
    shop = RepositoryDriver(resume=30)
    assert (shop.machine.trail, shop.machine.newest, shop.machine.acked) == (30, 29, 30)
    assert shop.out == []


def test_the_end_of_a_long_life_is_understood() -> None:
    """More than half of all wire numbers: high is above low, however far."""
    shop = RepositoryDriver(resume=None)
    shop.inform(0, HALF + 10)
    assert shop.machine.filling.high == HALF + 10


CLIENT = fx.Client(
    Role.SOURCE,
    50,
    2,
    "topic",
    0,
    LIFE,
    0,
    "source:1",
    "stream:1",
    0,
    0,
    -1,
    ((OLDER_LIFE, 0), (LIFE, 5)),
    lives_term=2,
)


def recovered(trail: int = 0, **client: Any) -> Repository:
    return Repository.recover(REPOSITORY_CONFIG, attrs.evolve(CLIENT, **client), trail)


def test_a_restart_finds_what_was_synced() -> None:
    machine, out = recovered(), list[fx.Effect]()
    machine.restore(0, 8, 0)
    machine.restore(10, 12, 0)
    check_invariants(machine)
    assert (machine.resume_point, machine.acked, machine.filling.high, machine.life.term) == (5, 8, 11, 2)
    machine.handle_timeout(SyncTickets(), 0, out)
    assert [type(message) for _, message in sends(out)] == [LateJoinRequest]
    machine.acknowledge_all(0, drain(out))


def test_a_restart_before_the_sri_knows_no_resume_point() -> None:
    machine = recovered(lives=((OLDER_LIFE, 0),))
    machine.restore(0, 8, 0)
    assert (machine.resume_point, machine.newest) == (None, 7)


def test_a_restart_behind_an_eviction_goes_on_from_the_trail() -> None:
    machine = recovered(trail=7)
    machine.restore(3, 9, 0)
    check_invariants(machine)
    assert (machine.trail, machine.acked, machine.available(0, 99)) == (7, 9, [(7, 9)])


@pytest.mark.parametrize(("repairs", "acks"), [(Repair.ALL, [(9, 9)]), (Repair.ALL & ~Repair.HOLES, [])])
def test_holes_below_the_resume_point_are_passed_over(repairs: Repair, acks: list[tuple[int, int]]) -> None:
    """Formal design, 7.5: they died with their life; as documented they hold back for ever."""
    shop = RepositoryDriver(repairs=repairs)
    shop.data(0, 5)
    shop.data(7, 2)
    shop.sync()
    shop.machine.begin_life(9, "source:1", 2)
    drain(shop.out)
    shop.inform(9, 8)
    shop.data(9, 1)
    shop.sync()
    assert shop.acks() == acks


@attrs.define
class Twin:
    """A dict of who sent what, by number."""

    life: int = LIFE
    resume: int | None = 0
    held: dict[int, int] = attrs.field(factory=dict)
    synced: dict[int, int] = attrs.field(factory=dict)

    def data(self, first: int, count: int, life: int) -> None:
        if self.resume is not None and life == self.life and first >= self.resume:
            for number in range(first, first + count):
                self.held.setdefault(number, life)

    def begin(self, life: int, resume: int) -> None:
        self.life, self.resume = life, resume
        self.held = {n: sender for n, sender in self.held.items() if n < resume}
        self.synced = {n: sender for n, sender in self.synced.items() if n < resume}

    @property
    def acked(self) -> int:
        number = self.resume or 0
        while number in self.synced:
            number += 1
        return number


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(0, 30), st.integers(1, 6), st.integers(0, 1)),
        st.tuples(st.just("data"), st.integers(0, 30), st.integers(1, 6), st.just(0)),
        st.tuples(st.just("more"), st.integers(1, 6)),
        st.tuples(st.just("sync")),
        st.tuples(st.just("life"), st.integers(0, 6)),
    ),
    max_size=25,
)


@given(STEPS, st.integers(-3, 3))
@settings(max_examples=100)
def test_the_repository_agrees_with_its_twin(steps: list[Any], wraps: int) -> None:
    """Numbers are moved by whole and half wraps: nothing may depend on where the wire numbers begin."""
    shop = RepositoryDriver(resume=wraps * HALF + 3)
    off = shop.machine.acked
    twin, acked = Twin(resume=off), set[tuple[int, int]]()
    for step in steps:
        match step:
            case ("data", first, count, back):
                shop.data(off + first, count, life=twin.life - back)
                twin.data(off + first, count, twin.life - back)
            case ("more", count):
                shop.data(shop.machine.newest + 1, count)
                twin.data(max(twin.held, default=shop.machine.trail - 1) + 1, count, twin.life)
            case ("sync",):
                shop.sync()
                twin.synced = dict(twin.held)
            case (_, back):
                resume = max(shop.machine.newest + 1 - back, off)
                shop.machine.begin_life(twin.life + 1, "source:1", 2)
                shop.inform(resume, resume - 1)
                twin.begin(twin.life + 1, resume)
        machine = shop.machine
        check_invariants(machine)
        assert {n for low, high in machine.held for n in range(low, high)} == set(twin.held)
        assert {n for low, high in machine.window.synced for n in range(low, high)} == set(twin.synced)
        assert machine.acked == twin.acked
        for first, last in shop.acks():
            numbers = range((last - first) % MODULUS + 1)
            acked |= {(twin.life, (first + n) % MODULUS) for n in numbers}
        assert {n for life, n in acked if life == twin.life} == {wire(n) for n in range(twin.resume or 0, twin.acked)}
