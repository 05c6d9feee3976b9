"""The messages of one source at a store: in memory, on disk, and their release at limits."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Data
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.settings import RepositoryType
from stablecast.core.store import message_window as window_module
from stablecast.core.store.extents import OVERHEAD_BYTES
from stablecast.core.store.message_window import MessageWindow
from stablecast.core.store.retention_terms import Terms
from stablecast.core.store.sync_tickets import SyncTickets
from tests.core.samples import LIFE, drain
from tests.support.invariants import check_invariants

SIZE = 100 - OVERHEAD_BYTES
"""Payload of a message that counts 100 bytes."""
DISK = Terms()
MEMORY = Terms(kind=RepositoryType.MEMORY)


class Shop:
    def __init__(self, terms: Terms = DISK, **changes: Any) -> None:
        self.window = MessageWindow(50, attrs.evolve(terms, **changes))
        self.tickets = SyncTickets()
        self.out: list[fx.Effect] = []

    def store(self, first: int, count: int, now: int = 0, size: int = SIZE) -> None:
        data = Data(LIFE, LIFE, first, count, size * count, False, 1)
        parts = self.window.held.missing(first, first + count)
        self.window.store(data, first, parts, now, self.tickets, self.out)
        check_invariants(self.window)

    def admits(self, count: int, size: int = SIZE) -> bool:
        first = self.window.lead + 1
        data = Data(LIFE, LIFE, first, count, size * count, False, 1)
        return self.window.admits(data, [(first, first + count)], self.out)

    def sync(self) -> None:
        for due in self.tickets.due(self.tickets.last):
            self.window.on_synced(due.first, due.stop)
        check_invariants(self.window)

    def let_go(self, number: int) -> None:
        self.window.let_go(number, self.tickets, self.out)
        check_invariants(self.window)


@pytest.mark.rows("P-103", "P-120", "P-576")
def test_on_disk_a_message_is_written_and_held_in_memory() -> None:
    shop = Shop()
    shop.store(0, 5)
    assert shop.out == [fx.PersistMessages(1, 50, LIFE, 1, 0, 5, 0, True)]
    assert (shop.window.trail, shop.window.mem_trail, shop.window.lead) == (0, 0, 4)
    assert not shop.window.synced
    shop.sync()
    assert list(shop.window.synced) == [(0, 5)]


def test_a_run_is_kept_in_parts_where_some_is_held() -> None:
    shop = Shop()
    shop.store(2, 2)
    drain(shop.out)
    shop.store(0, 6)
    assert [(w.first, w.skip, w.count, w.done) for w in shop.out if isinstance(w, fx.PersistMessages)] == [
        (0, 0, 2, False),
        (4, 4, 2, True),
    ]
    assert shop.window.disk.payload_bytes == 6 * SIZE


@pytest.mark.rows("P-102", "P-577")
@pytest.mark.parametrize("terms", [MEMORY, Terms(pace=Pace.RECEIVERS, ack_on_reception=True)])
def test_in_memory_nothing_is_written_and_what_was_received_counts(terms: Terms) -> None:
    """A weaker promise."""
    shop = Shop(terms)
    shop.store(0, 5)
    assert shop.out == [fx.CacheMessages(50, LIFE, 1, 0, 5, 0, True)]
    assert list(shop.window.synced) == [(0, 5)]
    assert not shop.window.disk


@pytest.mark.rows("P-579", "P-843")
def test_the_write_delay_holds_writes_back() -> None:
    """Neighbours are written together."""
    shop = Shop(write_delay_ns=10)
    for first, now in ((0, 0), (2, 1), (6, 1), (8, 5)):
        shop.store(first, 2, now)
    assert {type(effect) for effect in drain(shop.out)} == {fx.CacheMessages}
    assert shop.window.next_timeout() == 10
    assert shop.window.sync(RangeSet()) == (-1, -1, -1)
    shop.window.write_delayed(LIFE, 11, shop.tickets, shop.out)
    assert drain(shop.out) == [fx.PersistCached(1, 50, 0, 3), fx.PersistCached(2, 50, 6, 7)]
    assert shop.window.sync(RangeSet()) == (-1, 7, -1)
    shop.sync()
    assert shop.window.sync(RangeSet()) == (7, 7, 3)
    shop.window.write_delayed(LIFE, 15, shop.tickets, shop.out)
    shop.sync()
    assert shop.window.sync(RangeSet()) == (9, 9, 3)


@pytest.mark.rows("P-578")
def test_messages_released_before_their_write_are_not_written() -> None:
    shop = Shop(write_delay_ns=10)
    for first in (0, 2, 4):
        shop.store(first, 2)
    shop.let_go(3)
    shop.window.cut(5, shop.tickets, shop.out)
    drain(shop.out)
    shop.window.write_delayed(LIFE, 10, shop.tickets, shop.out)
    assert [(w.first, w.last) for w in shop.out if isinstance(w, fx.PersistCached)] == [(3, 4)]
    assert shop.window.next_timeout() is None


def test_unwritten_messages_are_known() -> None:
    """T19: it may never have come; in memory nothing is to be written."""
    shop = Shop()
    shop.store(0, 2)
    shop.sync()
    shop.store(3, 2)
    assert shop.window.unwritten(1, 6) == [(2, 6)]
    assert Shop(MEMORY).window.unwritten(0, 9) == []


@pytest.mark.rows("P-914")
def test_sync_numbers_are_those_of_the_monitor() -> None:
    """Eleven messages; 7 lost, or not known to be."""
    shop = Shop()
    shop.store(0, 7)
    shop.store(8, 3)
    assert shop.window.sync(RangeSet()) == (-1, 10, -1)
    shop.sync()
    assert shop.window.sync(RangeSet()) == (10, 10, 6)
    assert shop.window.sync(RangeSet([(7, 8)])) == (10, 10, 10)


@pytest.mark.rows("P-116", "P-821", "P-911")
def test_beyond_the_threshold_what_is_synced_leaves_the_memory() -> None:
    """On disk it remains."""
    shop = Shop(size_threshold=500)
    for first in range(8):
        shop.store(first, 1, now=first)
    drain(shop.out)
    shop.window.shrink(0, 9, shop.out)
    assert shop.out == []
    shop.sync()
    shop.window.shrink(0, 9, shop.out)
    assert shop.out == [fx.Uncache(50, 3)]
    assert (shop.window.trail, shop.window.mem_trail, shop.window.lead) == (0, 3, 7)
    assert shop.window.overflow(9) == 0


@pytest.mark.rows("P-116", "P-823", "P-913")
def test_old_messages_leave_the_memory() -> None:
    shop = Shop(age_ns=10)
    shop.store(0, 1, now=0)
    assert shop.window.next_timeout() is None
    shop.sync()
    shop.store(1, 1, now=5)
    shop.sync()
    assert shop.window.next_timeout() == 10
    for now, number in ((9, None), (10, 1), (15, 2)):
        drain(shop.out)
        shop.window.shrink(0, now, shop.out)
        assert shop.out == ([] if number is None else [fx.Uncache(50, number)])
    assert shop.window.next_timeout() is None


def test_a_reserve_keeps_the_memory_below_its_limit() -> None:
    shop = Shop(size_limit=500, pace=Pace.RECEIVERS)
    shop.store(0, 5, size=100)
    shop.sync()
    drain(shop.out)
    shop.window.shrink(200, 0, shop.out)
    assert shop.out == [fx.Uncache(50, 5)]


@pytest.mark.rows("P-110", "P-118")
def test_beyond_the_disk_limit_the_oldest_go() -> None:
    """As many as it takes."""
    shop = Shop(disk_limit=1000)
    shop.store(0, 20)
    assert shop.window.overflow(0) == 0
    shop.sync()
    assert shop.window.overflow(0) == 10
    shop.let_go(10)
    assert fx.Reclaim(2, 50, 10) in shop.out
    assert shop.window.overflow(0) == 10


@pytest.mark.rows("P-118")
def test_unwritten_messages_are_not_released() -> None:
    """Once it is gone it could never be acknowledged, though nothing was lost."""
    shop = Shop(disk_limit=1000)
    shop.store(0, 4)
    shop.sync()
    shop.store(4, 16)
    assert shop.window.overflow(0) == 4


@pytest.mark.rows("P-113", "P-114")
@pytest.mark.parametrize(("change", "number"), [({"size_threshold": 300}, 7), ({"age_ns": 5}, 4), ({}, 0)])
def test_in_memory_the_oldest_go_by_size_and_age(change: dict[str, Any], number: int) -> None:
    shop = Shop(MEMORY, **change)
    for first in range(10):
        shop.store(first, 1, now=first)
    assert shop.window.overflow(8) == number
    assert shop.window.next_timeout() == (5 if "age_ns" in change else None)


def test_a_paced_repository_ages_not() -> None:
    shop = Shop(MEMORY, pace=Pace.RECEIVERS, age_ns=5)
    shop.store(0, 1)
    assert shop.window.next_timeout() is None


@pytest.mark.rows("P-127")
def test_no_more_numbers_than_can_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "MAX_NUMBERS", 5)
    shop = Shop()
    shop.store(0, 8)
    assert shop.window.overflow(0) == 3


@pytest.mark.rows("P-115", "P-912", "P-919")
def test_in_memory_the_limit_keeps_newcomers_out() -> None:
    shop = Shop(MEMORY, size_limit=500)
    shop.store(0, 4)
    assert shop.admits(1)
    assert not shop.admits(2)
    assert shop.window.free_bytes() == 100


@pytest.mark.rows("P-117", "P-822")
def test_on_disk_only_what_is_not_synced_keeps_newcomers_out() -> None:
    """The rest leaves the memory for them."""
    shop = Shop(size_limit=500)
    shop.store(0, 3, now=1)
    shop.store(3, 2, now=2)
    assert not shop.admits(1)
    shop.sync()
    drain(shop.out)
    assert shop.admits(2)
    assert shop.out == [fx.Uncache(50, 3)]


@pytest.mark.rows("P-128")
def test_a_paced_repository_counts_payload_only_and_takes_no_more_than_its_disk() -> None:
    """U15."""
    shop = Shop(pace=Pace.RECEIVERS, size_limit=2000, disk_limit=1000)
    shop.store(0, 9, size=100)
    assert shop.window.free_bytes() == 100
    assert shop.admits(1, 100)
    assert not shop.admits(1, 101)
    assert shop.window.short_of(300) == 2
    assert Shop(pace=Pace.RECEIVERS).window.short_of(300) == 0
    assert Shop().window.free_bytes() is None


def test_a_dead_tail_is_cut_from_memory_and_disk() -> None:
    shop = Shop()
    shop.store(0, 10)
    drain(shop.out)
    shop.window.cut(4, shop.tickets, shop.out)
    check_invariants(shop.window)
    assert shop.out == [fx.Cut(2, 50, 4)]
    assert (shop.window.lead, shop.window.memory.messages, shop.window.disk.messages) == (3, 4, 4)
    shop.sync()
    assert list(shop.window.synced) == [(0, 4)]


@pytest.mark.rows("P-109", "P-911")
def test_a_restart_finds_messages_on_disk_and_none_in_memory() -> None:
    """A repository of which something is on disk is one on disk, whatever is configured now."""
    shop = Shop(MEMORY)
    shop.window.trail = 3
    shop.window.restore(0, 10, 1000)
    check_invariants(shop.window)
    assert (shop.window.mem_trail, shop.window.lead, shop.window.disk.payload_bytes) == (10, 9, 700)
    assert (list(shop.window.synced), shop.window.terms.written) == ([(3, 10)], True)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.integers(0, 30), st.integers(1, 6)),
        st.tuples(st.just("more"), st.integers(1, 6)),
        st.tuples(st.sampled_from(["sync", "write"])),
        st.tuples(st.sampled_from(["let_go", "cut"]), st.integers(0, 30)),
        st.tuples(st.just("shrink"), st.integers(0, 5)),
    ),
    max_size=25,
)


@given(STEPS, st.sampled_from([0, 3]), st.sampled_from(list(RepositoryType)[1:3]))
def test_the_window_agrees_with_its_twin(steps: list[Any], delay: int, kind: RepositoryType) -> None:
    """A twin of sets: what is held, in memory, on disk; nothing leaves the memory that is not on disk."""
    shop, held = Shop(kind=kind, size_threshold=700, write_delay_ns=delay), set[int]()
    for now, step in enumerate(steps):
        window = shop.window
        match step:
            case ("store", first, count):
                if first >= window.trail:
                    shop.store(first, count, now)
                    held |= set(range(first, first + count))
            case ("more", count):
                first = window.lead + 1
                shop.store(first, count, now)
                held |= set(range(first, first + count))
            case ("sync",):
                shop.sync()
            case ("write",):
                window.write_delayed(LIFE, now, shop.tickets, shop.out)
            case ("let_go", number):
                if number > window.trail:
                    shop.let_go(number)
                    held = {n for n in held if n >= number}
            case ("cut", number):
                if window.trail <= number <= window.lead:
                    window.cut(number, shop.tickets, shop.out)
                    held = {n for n in held if n < number}
            case (_, reserve):
                window.shrink(reserve, now, shop.out)
        check_invariants(window)
        kept = {n for low, high in window.held for n in range(low, high)}
        synced = {n for low, high in window.synced for n in range(low, high)}
        in_memory = {n for run in window.memory.runs for n in range(run.first, run.stop)}
        assert kept == held
        assert held - in_memory <= synced
        assert window.kept.messages == len(held)


def test_unreadable_messages_are_kept_no_more() -> None:
    """Only what is synced can be spoilt; the newest may be among it."""
    shop = Shop()
    shop.store(0, 6)
    shop.sync()
    shop.store(6, 2)
    shop.window.spoil(1, 3)
    shop.window.spoil(5, 8)
    check_invariants(shop.window)
    assert list(shop.window.held) == [(0, 1), (3, 5), (6, 8)]
    assert list(shop.window.synced) == [(0, 1), (3, 5)]
    assert shop.window.disk.messages == shop.window.memory.messages == 5
    shop.sync()
    shop.window.spoil(6, 8)
    check_invariants(shop.window)
    assert shop.window.lead == 4
