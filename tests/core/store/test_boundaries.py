"""The boundaries of a repository: exactly one, exactly the limit, the first and the last of a range, and the wrap."""

import attrs
import pytest

from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import LackCause, LostAtStore, NotRefilled, Refilled, ReleasedUnread
from stablecast.core.protocol.inputs import Damaged, Data, Lost, Tick
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.settings import RepositoryConfig
from stablecast.core.store import message_window as window_module
from stablecast.core.store.extents import OVERHEAD_BYTES
from stablecast.core.store.refill import AGAIN_NS, ROUNDS, TRIES
from stablecast.core.store.retention_terms import MAX_NUMBERS, Terms
from tests.core.drivers import RECEIVER, RETRY_NS, SOURCE, RepositoryDriver, StoreDriver
from tests.core.samples import LIFE, drain, events, info, register
from tests.core.store.test_message_window import MEMORY, SIZE, Shop
from tests.core.store.test_refill import FREE, STORES, requests, second_life
from tests.core.store.test_repository_paced import PacedDriver

BEGINNINGS = (0, serial.HALF - 3, serial.MODULUS - 3)
"""Numbers before a wrap, or before the middle of all numbers, and the beginning itself."""


def written(out: list[fx.Effect]) -> list[tuple[int, int]]:
    """Return first number and count of each run that goes to the disk."""
    return [(one.first, one.count) for one in out if isinstance(one, fx.PersistMessages)]


# ------------------------------------------------------------------------------------- a source that is old already


@pytest.mark.parametrize("pace", [Pace.SOURCE, Pace.RECEIVERS])
@pytest.mark.parametrize("before", [0, 100])
@pytest.mark.parametrize(
    "resumes", [100, *(wrap + near for wrap in (serial.HALF, serial.MODULUS) for near in (-9, 0, 1, 50))]
)
def test_a_store_that_hears_late_of_a_source_keeps_its_messages_over_a_restart(
    resumes: int, before: int, pace: Pace
) -> None:
    """The source has sent half of all numbers, or all of them, before it registers here in another life.

    The store lacks the messages of the life before, acknowledges the new ones, and restarts.
    """
    driver = StoreDriver(**FREE, allow_rpp=True)
    driver.hear(register(**SOURCE, incarnation=LIFE + 1, pace=pace))
    driver.sync()
    low = serial.wire(resumes)
    lives = ((LIFE, serial.wire(resumes - before)), (LIFE + 1, low))[not before :]
    driver.hear(info(incarnation=LIFE + 1, low=low, high=serial.wire(resumes - 1), term=2, lives=lives, stores=STORES))
    driver.hear(register(**RECEIVER, incarnation=LIFE + 1, pace=pace))
    driver.sync()
    driver.run(LIFE + 1, LIFE + 1, resumes, 60, recovered=False, now=1)
    driver.sync(1)
    assert driver.acks() == [(low, serial.wire(resumes + 59))]
    status = driver.machine.status.repositories[50]
    ((first, stop),) = list(status.synced)
    assert (serial.wire(first), stop - first) == (low, 60)
    assert status.lacking_numbers == [(first - before, first)] * bool(before)

    again = StoreDriver(**FREE, allow_rpp=True)
    clients = driver.machine.checkpoint()
    trail = min(first, *(client.lives[0][1] for client in clients if client.lives))
    again.machine.recover(clients, [(50, first, 60, 0)], {50: trail}, 0)
    status = again.machine.status.repositories[50]
    assert list(status.synced) == [(first, stop)]
    assert status.lacking_numbers == [(first - before, first)] * bool(before)


# ------------------------------------------------------------------------------------------------ the kept messages


def test_what_was_given_to_the_disk_is_not_less_than_what_is_on_it() -> None:
    """A hole that is filled late waits for its delayed write, below messages that are synced."""
    shop = Shop(write_delay_ns=10)
    shop.store(5, 2, now=0)
    shop.window.write_delayed(LIFE, 10, shop.tickets, shop.out)
    shop.sync()
    shop.store(0, 2, now=11)
    assert shop.window.sync(shop.window.synced.copy())[:2] == (6, 6)


def test_a_paced_repository_without_a_limit_of_its_disk_takes_everything() -> None:
    shop = Shop(pace=Pace.RECEIVERS, size_limit=1000)
    shop.store(0, 1, size=100)
    assert shop.admits(9, 100)
    assert not shop.admits(10, 100)


@pytest.mark.parametrize(
    ("threshold", "reserve", "number"), [(0, 200, 2), (400, 200, 2), (200, 100, 3), (0, 500, 5), (0, 600, 5)]
)
def test_the_lower_of_threshold_and_reserve_bounds_the_memory(threshold: int, reserve: int, number: int) -> None:
    """A reserve of the whole limit, or of more, leaves nothing in memory."""
    shop = Shop(size_limit=500, size_threshold=threshold, pace=Pace.RECEIVERS)
    for first in range(5):
        shop.store(first, 1, now=first, size=100)
    shop.sync()
    drain(shop.out)
    shop.window.shrink(reserve, 9, shop.out)
    assert shop.out == [fx.Uncache(50, number)]


def test_a_span_that_is_too_wide_is_cut_although_its_end_is_not_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that cannot be told apart are worse than messages that are never stable."""
    monkeypatch.setattr(window_module, "MAX_NUMBERS", 5)
    shop = Shop(disk_limit=100)
    shop.store(0, 8)
    assert shop.window.overflow(0) == 3


@pytest.mark.parametrize(("delay", "age", "due"), [(10, 30, 15), (40, 20, 20), (15, 20, 20)])
def test_the_earlier_of_a_write_and_an_age_is_due(delay: int, age: int, due: int) -> None:
    """The first message is synced and ages; the second waits for its write since time 5."""
    shop = Shop(age_ns=age)
    shop.store(0, 1, now=0)
    shop.sync()
    shop.window.terms = attrs.evolve(shop.window.terms, write_delay_ns=delay)
    shop.store(1, 1, now=5)
    assert shop.window.next_timeout() == due


@pytest.mark.parametrize(
    ("trail", "cut", "left"), [(2, 2, []), (0, 2, [(0, 1)]), (0, 3, [(0, 2)]), (2, 4, [(2, 3)]), (1, 4, [(1, 3)])]
)
def test_a_delayed_write_that_nothing_is_left_of_is_cancelled(
    trail: int, cut: int, left: list[tuple[int, int]]
) -> None:
    """[0, 2) and [2, 4) wait. A trail or a cut may fall between them."""
    shop = Shop(write_delay_ns=10)
    shop.store(0, 2)
    shop.store(2, 2)
    if trail:
        shop.let_go(trail)
    shop.window.cut(cut, shop.tickets, shop.out)
    drain(shop.out)
    shop.window.write_delayed(LIFE, 10, shop.tickets, shop.out)
    assert [(one.first, one.last) for one in shop.out if isinstance(one, fx.PersistCached)] == left
    assert not shop.window.delayed


@pytest.mark.parametrize(
    ("parts", "room", "fits"),
    [
        ([(0, 5), (7, 12)], 5, [(0, 5)]),
        ([(0, 2), (7, 13)], 4, [(0, 2), (7, 9)]),
        ([(0, 2), (7, 9)], 4, [(0, 2), (7, 9)]),
        ([(0, 2)], 0, []),
    ],
)
def test_the_oldest_parts_that_fit_are_whole_numbers_of_the_run(
    parts: list[tuple[int, int]], room: int, fits: list[tuple[int, int]]
) -> None:
    """The room ends exactly at a part, inside of one, or there is none."""
    shop = Shop(MEMORY, size_limit=100 * room or 1)
    data = Data(LIFE, LIFE, 0, 13, SIZE * 13, False, 1)
    assert shop.window.fitting(data, parts, shop.out) == fits


@pytest.mark.parametrize(("excess", "number"), [(0, 0), (1, 1), (100, 1), (101, 2), (200, 2), (201, 3), (300, 3)])
def test_exactly_as_much_goes_as_is_too_much(excess: int, number: int) -> None:
    shop = Shop(disk_limit=1000 - excess)
    shop.store(0, 2)
    shop.store(2, 8)
    shop.sync()
    assert shop.window.overflow(0) == number
    assert shop.window.disk.below(0, excess, OVERHEAD_BYTES) == number


@pytest.mark.parametrize(("number", "messages"), [(0, 4), (2, 2), (3, 1), (4, 0)])
def test_extents_end_where_they_are_cut_and_begin_where_they_are_forgotten(number: int, messages: int) -> None:
    """Also exactly between two of them: no empty one stays."""
    for cut in (False, True):
        shop = Shop()
        shop.store(0, 2, now=1)
        shop.store(2, 2, now=2)
        shop.sync()
        memory = shop.window.memory
        (memory.cut if cut else memory.forget)(number)
        assert memory.messages == (4 - messages if cut else messages)
        assert memory.payload_bytes == memory.messages * SIZE
        assert all(run.first < run.stop for run in memory.runs)


def test_the_widest_span_can_be_told_apart() -> None:
    """P-127: the newest number is less than half of all numbers above the oldest, so each knows the other's side."""
    oldest, newest = 5, 5 + MAX_NUMBERS
    assert serial.extend(serial.wire(newest), oldest) == newest
    assert serial.extend(serial.wire(oldest), newest) == oldest
    assert serial.before(serial.wire(oldest), serial.wire(newest))


# ------------------------------------------------------------------------------------- acknowledgements and losses


@pytest.mark.parametrize("low", BEGINNINGS)
@pytest.mark.parametrize(("resumes", "held"), [(3, 3), (4, 4), (5, 5), (6, 5)])
def test_a_dead_tail_of_one_message_is_cut(low: int, resumes: int, held: int) -> None:
    """Five messages of the first life; the next one begins at the last of them, or directly behind it."""
    shop = RepositoryDriver(resume=low)
    shop.data(low, 5)
    shop.sync()
    shop.machine.begin_life(LIFE + 1, "source:1", 2)
    lives = ((LIFE, serial.wire(low)), (LIFE + 1, serial.wire(low + resumes)))
    shop.inform(low + resumes, low + resumes - 1, incarnation=LIFE + 1, term=2, lives=lives)
    assert list(shop.machine.held) == [(low, low + held)]


@pytest.mark.parametrize("low", BEGINNINGS)
@pytest.mark.parametrize(("gap", "burst"), [(1, False), (10, False), (11, True)])
def test_a_gap_is_a_burst_from_one_number_more_on(low: int, gap: int, burst: bool) -> None:
    """T30, in a run that arrives and in a loss that the transport reports."""
    lost = LostAtStore(50, low + 1, low + gap, burst=True)
    shop = RepositoryDriver(resume=low, burst=10)
    shop.data(low, 1)
    shop.data(low + 1 + gap, 1)
    assert (lost in events(shop.out)) is burst
    shop = RepositoryDriver(resume=low, burst=10)
    shop.data(low, 1)
    shop.machine.on_lost(Lost(LIFE, serial.wire(low + 1), gap), 0, shop.out)
    assert (lost in events(shop.out)) is burst


def test_what_lies_below_the_trail_is_in_no_burst() -> None:
    shop = RepositoryDriver(resume=5)
    shop.machine.on_lost(Lost(LIFE, 2, 6, True), 0, shop.out)
    assert events(shop.out) == [LostAtStore(50, 5, 7, burst=True)]


def test_an_old_life_is_synced_as_far_as_its_ticket_says_and_not_up_to_the_new_one() -> None:
    """Nor above the resume point, where the new life uses the numbers again."""
    shop = RepositoryDriver()
    shop.data(0, 4)
    shop.data(4, 4)
    shop.machine.begin_life(LIFE + 1, "source:1", 2)
    shop.inform(6, 5, incarnation=LIFE + 1, term=2, lives=((LIFE, 0), (LIFE + 1, 6)))
    shop.data(6, 4, life=LIFE + 1)
    shop.machine.on_synced(LIFE, 0, 4, shop.tickets, 0, shop.out)
    assert list(shop.machine.window.synced) == [(0, 4)]
    shop.machine.on_synced(LIFE, 4, 8, shop.tickets, 0, shop.out)
    assert list(shop.machine.window.synced) == [(0, 6)]


def test_damage_on_both_sides_of_a_loss_is_due_again_from_its_first_number_on() -> None:
    """Two acknowledgements wait for more. Both messages come again, and both are acknowledged."""
    shop = RepositoryDriver(terms=Terms(ack_minimum=9, ack_interval_ns=100))
    shop.data(0, 3)
    shop.data(4, 3)
    shop.machine.on_lost(Lost(LIFE, 3, 1, True), 0, shop.out)
    shop.sync()
    assert shop.acks() == []
    shop.machine.on_damaged(0, 7, 1, shop.out)
    for first in 0, 4:
        shop.data(first, 3, recovered=True, now=2)
    shop.sync(now=2)
    shop.tick(200)
    assert shop.acks() == [(0, 2), (4, 6)]


@pytest.mark.rows("P-012")
def test_a_withheld_acknowledgement_is_withheld_for_a_run_that_comes_twice() -> None:
    """C-32: the run begins below what was acknowledged and ends above it."""
    shop = PacedDriver(flight_bytes=500)
    shop.data(0, 5, size=100)
    shop.sync()
    assert shop.acks() == [(0, 4)]
    shop.data(5, 5, size=100)
    shop.sync()
    assert shop.acks() == []
    shop.data(3, 4, size=100)
    assert shop.acks() == [(3, 4)]


@pytest.mark.parametrize(("held", "room"), [(400, True), (500, True), (600, False)])
def test_there_is_room_for_a_flight_if_it_fits_exactly(held: int, room: bool) -> None:
    shop = PacedDriver(flight_bytes=500)
    shop.data(0, held // 100, size=100)
    shop.sync()
    assert bool(shop.acks()) is room


@pytest.mark.rows("P-122")
@pytest.mark.parametrize(("consumed", "unread"), [(1, True), (2, False), (3, False)])
def test_one_unread_message_that_is_released_is_reported(consumed: int, unread: bool) -> None:
    """Ten messages find room, and thirteen come, so the trail becomes 3. Number 2 is the last one that goes."""
    driver = StoreDriver.with_receiver(disk_limit=10 * OVERHEAD_BYTES)
    driver.consume(consumed)
    told = driver.data(10, 3)
    driver.sync()
    assert [*told, *events(driver.effects)] == [ReleasedUnread(50, 70, 3)] * unread


# -------------------------------------------------------------------------------------------------------- the refill


def filled(limit: int) -> StoreDriver:
    """A store that lacks 0 to 9, and keeps this many messages at most."""
    driver = second_life(10, repository=RepositoryConfig(disk_limit=limit * OVERHEAD_BYTES))
    driver.feed(Tick(), 1)
    assert requests(driver)
    return driver


@pytest.mark.parametrize(("came", "limit"), [([], 1), ([], 2), ([(5, 5)], 2), ([(5, 5)], 6), ([(0, 2), (8, 2)], 3)])
def test_what_a_limit_released_is_lacking_no_more(came: list[tuple[int, int]], limit: int) -> None:
    """Else the refill would never end, and whoever waits for it, as `store roll` does, would wait for ever.

    Some of the lacking messages came back. Live ones fill the room, and the oldest go, with all that is below them.
    """
    driver = filled(limit)
    told = []
    for first, count in came:
        told += driver.run(LIFE + 1, LIFE, first, count, recovered=True, now=2)
        driver.sync(2)
        told += events(driver.effects)
    for number in range(10, 10 + limit + 1):
        told += driver.run(LIFE + 1, LIFE + 1, number, 1, recovered=False, now=3)
        driver.sync(3)
        told += events(driver.effects)
    status = driver.machine.status.repositories[50]
    assert status.trail == 11
    assert (status.lacking, status.lacking_numbers) == (None, [])
    assert [type(one) for one in told if isinstance(one, Refilled)] == [Refilled]
    driver.feed(Tick(), 1000 * SECOND)
    assert not [to for to, *_ in requests(driver) if to.startswith("peer")]


def test_the_part_above_what_a_limit_released_is_still_lacking() -> None:
    driver = filled(4)
    driver.run(LIFE + 1, LIFE, 2, 2, recovered=True, now=2)
    driver.run(LIFE + 1, LIFE + 1, 10, 3, recovered=False, now=3)
    driver.sync(3)
    assert driver.machine.status.repositories[50].trail == 3
    assert driver.machine.status.repositories[50].lacking_numbers == [(4, 10)]


def test_only_the_numbers_of_a_run_are_kept_of_it() -> None:
    """A run from the middle of what is lacking; then one from below, which lowers the trail, and one between."""
    driver = second_life(100)
    driver.feed(Tick(), 1)
    for first, trail, lacking in (60, 60, [(0, 60), (70, 100)]), (0, 0, [(10, 60), (70, 100)]), (30, 0, None):
        driver.run(LIFE + 1, LIFE, first, 10, recovered=True, now=2)
        assert written(driver.effects) == [(first, 10)]
        status = driver.machine.status.repositories[50]
        assert status.trail == trail
        assert lacking is None or status.lacking_numbers == lacking


def test_damage_makes_nothing_else_lacking() -> None:
    """Numbers 2 to 4 are on their way from the source, and 6 cannot be read."""
    driver = StoreDriver(**FREE)
    driver.hear(register(**SOURCE))
    driver.sync()
    driver.hear(info(low=0, high=-1 % serial.MODULUS, lives=((LIFE, 0),), stores=STORES))
    driver.data(0, 2)
    driver.data(5, 5)
    driver.sync()
    driver.feed(Damaged(50, 6, 6), 1)
    assert driver.machine.status.repositories[50].lacking_numbers == [(6, 7)]


def test_what_is_lacking_for_two_reasons_is_one_number_each() -> None:
    """The higher numbers were missed first, and the lower ones for another reason."""
    driver = second_life(100)
    driver.feed(Tick(), 1)
    driver.run(LIFE + 1, LIFE, 0, 100, recovered=True, now=2)
    driver.sync()
    refill = driver.machine.repositories[50].refill
    assert refill is not None
    out: list[fx.Effect] = []
    refill.lack([(50, 60)], LackCause.AWAY, 3, out)
    refill.lack([(10, 20)], LackCause.EMPTY, 3, out)
    assert refill.lacks(0, 100) == [(10, 20), (50, 60)]
    refill.lack([(0, 70)], LackCause.DAMAGED, 3, out)
    assert {LackCause(cause): list(ranges) for cause, ranges in refill.lacking.items()} == {
        LackCause.AWAY: [(50, 60)],
        LackCause.EMPTY: [(10, 20)],
        LackCause.DAMAGED: [(0, 10), (20, 50), (60, 70)],
    }
    assert refill.total == 70


def test_a_round_begins_at_its_time_and_not_a_nanosecond_later() -> None:
    """30 s after the first, and each wait is twice as long. Each report names the numbers, first and last."""
    driver = second_life(10)
    began, ends, now = [1], list[tuple[int, NotRefilled]](), 1
    driver.feed(Tick(), now)
    while len(ends) < ROUNDS:
        following = driver.machine.registry.refilling.due
        assert following is not None
        assert following > now
        now = following
        ended = [one for one in driver.feed(Tick(), now) if isinstance(one, NotRefilled)]
        ends += [(now, one) for one in ended]
        if requests(driver) and len(began) == len(ends):
            began.append(now)
    assert [one for _, one in ends] == [
        NotRefilled(50, 10, 0, 9, LackCause.AWAY, final=number == ROUNDS) for number in range(1, ROUNDS + 1)
    ]
    waits = [start - end for (end, _), start in zip(ends, began[1:], strict=False)]
    assert waits == [AGAIN_NS * 2**number for number in range(ROUNDS - 1)]
    asked = 2 * TRIES * RETRY_NS
    assert [end - start for start, (end, _) in zip(began, ends, strict=True)] == [asked] * ROUNDS
