"""Refill: what a store lacks, what it asks its peers for, and what it keeps of the answers."""

from typing import Any

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    LackCause,
    LostAtStore,
    MessagesDropped,
    NotRefilled,
    Refilled,
    RefillStarted,
)
from stablecast.core.protocol.inputs import Damaged, Lacking, Persisted, Tick
from stablecast.core.protocol.messages import (
    ANY_STORE,
    LateJoinInfo,
    LateJoinRequest,
    RetransmitRequest,
    Role,
    StoreEntry,
    StoreMemory,
)
from stablecast.core.protocol.settings import RepositoryConfig
from stablecast.core.store.refill import AGAIN_NS, ROUNDS, SLICE_MESSAGES, YIELD_NS
from stablecast.core.store.refill_service import RefillBudget
from tests.core.drivers import RETRY_NS, SOURCE, StoreDriver
from tests.core.samples import LIFE, events, info, register

NEXT = LIFE + 1
PEERS = (StoreEntry(1, 0, "peer:1", 61, 0), StoreEntry(2, 0, "peer:2", 62, 0))
STORES = (StoreEntry(0, 0, "store:1", 50, 0), *PEERS)
FREE: dict[str, Any] = {"refill_rate": 0, "refill_byte_rate": 0}


def requests(driver: StoreDriver) -> list[tuple[str, int, int, int]]:
    """Return address, RegID there, first and last number of each request that was just sent."""
    return [(to, one.source_reg_id, one.first, one.last) for to, one in driver.sent(RetransmitRequest)]


def second_life(resumes: int, memory: StoreMemory = StoreMemory.KEPT, **changes: Any) -> StoreDriver:
    """Return a store that missed the first life, and hears of a second one that begins at `resumes`."""
    driver = StoreDriver(**{**FREE, **changes})
    if memory is not StoreMemory.KEPT:
        driver.machine.recover([], [], {}, 0, standing=memory)
    driver.hear(register(**SOURCE, incarnation=NEXT))
    driver.sync()
    lives = ((LIFE, 0), (NEXT, resumes))
    driver.hear(info(incarnation=NEXT, low=resumes, high=resumes - 1, term=2, lives=lives, stores=STORES))
    return driver


@pytest.mark.parametrize(
    ("memory", "cause"),
    [(StoreMemory.KEPT, LackCause.AWAY), (StoreMemory.LOST, LackCause.EMPTY)],
    ids=["away", "empty"],
)
def test_a_store_asks_its_peers_for_the_lives_that_it_missed(memory: StoreMemory, cause: LackCause) -> None:
    driver = second_life(100, memory)
    assert events(driver.effects) == [RefillStarted(50, 100, cause)]
    lacking = driver.machine.status.repositories[50].lacking
    assert lacking is not None
    assert (lacking.messages, lacking.peers) == ({cause: 100}, 2)
    driver.feed(Tick(), 1)
    assert requests(driver) == [("peer:2", 62, 0, 99)]


@pytest.mark.parametrize(
    ("memory", "cause"),
    [(StoreMemory.KEPT, LackCause.AWAY), (StoreMemory.LOST, LackCause.EMPTY)],
    ids=["away", "empty"],
)
def test_a_store_names_why_it_lacks_what_a_running_source_cannot_send(memory: StoreMemory, cause: LackCause) -> None:
    """The source retains its newest messages only."""
    driver = StoreDriver(**FREE)
    driver.machine.recover([], [], {}, 0, standing=memory)
    driver.hear(register(**SOURCE))
    driver.sync()
    driver.hear(info(low=0, high=99, lives=((LIFE, 0),), stores=STORES))
    driver.hear(LateJoinInfo(LIFE, 0, 90, 99), 1)
    assert events(driver.effects) == [LostAtStore(50, 0, 89), RefillStarted(50, 90, cause)]


def test_a_live_message_that_comes_late_is_not_lacking_any_more() -> None:
    """A reliable transport repeated it, after the source had answered that it retains newer ones only."""
    driver = StoreDriver(**FREE)
    driver.hear(register(**SOURCE))
    driver.sync()
    driver.hear(info(low=0, high=1, lives=((LIFE, 0),), stores=STORES))
    driver.hear(LateJoinInfo(LIFE, 0, 1, 1), 1)
    assert driver.machine.status.repositories[50].lacking_numbers == [(0, 1)]
    driver.run(LIFE, LIFE, 0, 1, recovered=False, now=2)
    driver.sync()
    assert events(driver.effects) == [Refilled(50, 1)]
    assert driver.machine.status.repositories[50].lacking_numbers == []


def test_what_comes_back_is_kept_and_reported_once_it_is_synced() -> None:
    driver = second_life(100)
    driver.feed(Tick(), 1)
    assert driver.run(NEXT, LIFE, 0, 100, recovered=True, now=2) == []
    assert [
        (one.first, one.count, one.incarnation) for one in driver.effects if isinstance(one, fx.PersistMessages)
    ] == [(0, 100, LIFE)]
    driver.sync()
    assert events(driver.effects) == [Refilled(50, 100)]
    status = driver.machine.status.repositories[50]
    assert (list(status.synced), status.trail, status.lacking) == ([(0, 100)], 0, None)


def test_a_message_of_a_life_that_does_not_own_its_number_is_refused() -> None:
    """Number 60 belongs to the first life, and the peer has a dead tail of another one (formal design, 7.3)."""
    driver = second_life(100)
    driver.feed(Tick(), 1)
    driver.run(NEXT, LIFE + 9, 60, 10, recovered=True, now=2)
    assert [type(effect) for effect in driver.effects] == [fx.Discard]
    assert driver.machine.status.repositories[50].lacking_numbers == [(0, 100)]


def test_an_unrequested_number_is_refused() -> None:
    """The history begins at number 0, and what lies below was never announced."""
    driver = second_life(100)
    driver.feed(Tick(), 1)
    driver.run(NEXT, LIFE, -5, 5, recovered=True, now=2)
    assert [type(effect) for effect in driver.effects] == [fx.Discard]


def test_what_the_driver_misses_is_lacking_and_nothing_else() -> None:
    driver = StoreDriver(**FREE)
    driver.hear(register(**SOURCE))
    driver.sync()
    driver.hear(info(low=0, high=-1 % 2**32, lives=((LIFE, 0),), stores=STORES))
    for number in (0, 3):
        driver.run(LIFE, LIFE, number, 1, recovered=False, now=1)
        driver.sync()
    assert driver.machine.status.repositories[50].lacking_numbers == []
    driver.feed(Lacking(50, 1, 2, LackCause.EMPTY), 2)
    assert driver.machine.status.repositories[50].lacking_numbers == [(1, 3)]


def test_what_a_rule_released_is_not_asked_for() -> None:
    driver = StoreDriver(**FREE, repository=RepositoryConfig(disk_limit=1))
    driver.hear(register(**SOURCE))
    driver.sync()
    driver.hear(info(low=0, high=-1 % 2**32, lives=((LIFE, 0),), stores=STORES))
    for number in range(4):
        driver.run(LIFE, LIFE, number, 1, recovered=False, now=1)
        driver.sync()
    assert driver.machine.status.repositories[50].trail == 4
    driver.feed(Lacking(50, 0, 3, LackCause.EMPTY), 2)
    assert driver.machine.status.repositories[50].lacking is None


def test_what_a_rule_released_of_a_dead_tail_is_asked_for_when_a_later_life_used_its_numbers() -> None:
    """The numbers are those of other messages now, which no rule released."""
    driver = StoreDriver(**FREE, repository=RepositoryConfig(disk_limit=1))
    driver.hear(register(**SOURCE))
    driver.sync()
    driver.hear(info(low=0, high=-1 % 2**32, lives=((LIFE, 0),), stores=STORES))
    for number in range(4):
        driver.run(LIFE, LIFE, number, 1, recovered=False, now=1)
        driver.sync()
    driver.hear(register(**SOURCE, incarnation=NEXT), 2)
    driver.sync()
    driver.hear(info(incarnation=NEXT, low=2, high=5, term=2, lives=((LIFE, 0), (NEXT, 2)), stores=STORES), 2)
    driver.hear(LateJoinInfo(NEXT, 0, 5, 5), 3)
    # Numbers 0 and 1 are of the first life, and were released.
    assert driver.machine.status.repositories[50].lacking_numbers == [(2, 5)]


def test_a_damaged_record_is_asked_for_at_once() -> None:
    driver = second_life(10)
    driver.feed(Tick(), 1)
    driver.run(NEXT, LIFE, 0, 10, recovered=True, now=2)
    driver.sync()
    driver.feed(Damaged(50, 4, 5), 3)
    driver.feed(Tick(), 4)
    assert [parts[2:] for parts in requests(driver)] == [(4, 5)]
    lacking = driver.machine.status.repositories[50].lacking
    assert lacking is not None
    assert lacking.messages == {LackCause.DAMAGED: 2}


def test_each_peer_is_asked_twice_and_then_the_round_ends() -> None:
    """It begins again later, ever more rarely, and ends for good; another store that registers begins it anew."""
    driver = second_life(10)
    asked, ends, now = [], [], 1
    for _ in range(1000):
        ends += [event for event in driver.feed(Tick(), now) if isinstance(event, NotRefilled)]
        asked += [to for to, *_ in requests(driver)]
        following = driver.machine.registry.refilling.due
        if following is None or following > 2**62:
            break
        now = max(now + 1, following)
    assert sorted(asked) == ["peer:1"] * 2 * ROUNDS + ["peer:2"] * 2 * ROUNDS
    assert [one.final for one in ends] == [False] * (ROUNDS - 1) + [True]
    assert now > AGAIN_NS
    changed = (*STORES[:2], StoreEntry(2, 0, "peer:2", 62, 1))
    lives = ((LIFE, 0), (NEXT, 10))
    driver.hear(info(incarnation=NEXT, low=10, high=9, term=2, version=2, lives=lives, stores=changed), now)
    driver.feed(Tick(), now + 1)
    assert requests(driver)


def test_what_all_peers_deny_is_done_with_in_one_step() -> None:
    """The part that one peer may have is asked for, and the round ends as if all had been asked in vain."""
    driver = second_life(100, repository=RepositoryConfig(size_limit=2 * 2 * (256 + 12)))
    asked, now = [], 1
    for low in (100, 100, 90, 95):  # Neither has the newest ones.
        driver.feed(Tick(), now)
        ((request_to, request),) = driver.sent(RetransmitRequest)
        asked.append((request_to, request.first, request.last, request.store_index))
        now += 1
        driver.hear(LateJoinInfo(NEXT, request.request, low, 99, int(request_to[-1])), now)
    assert [asked[0][1:], asked[1][1:]] == [(98, 99, 0)] * 2
    assert [asked[2][1:], asked[3][1:]] == [(0, 1, 0)] * 2
    assert {asked[0][0], asked[1][0]} == {asked[2][0], asked[3][0]} == {"peer:1", "peer:2"}
    driver.feed(Tick(), now)
    assert [one[2:] for one in requests(driver)] == [(90, 91)]
    assert driver.machine.status.repositories[50].lacking_numbers == [(0, 100)]
    assert driver.machine.repositories[50].refill.awaited(0, 100) == 90


@pytest.mark.parametrize("forwarding", [False, True])
@pytest.mark.parametrize("store_index", [1, ANY_STORE], ids=["today", "earlier"])
def test_a_store_denies_to_another_one_that_hears_denials(store_index: int, forwarding: bool) -> None:
    """Stores of earlier releases would take a denial for the source's. None is asked of the source for them."""
    driver = second_life(100, repository=RepositoryConfig(forwarding=forwarding), request_rate=1000)
    driver.run(NEXT, NEXT, 100, 5, recovered=False, now=1)
    driver.sync()
    driver.machine.repositories[50].refill.waiting.remove(0, 100)
    driver.hear(RetransmitRequest(Role.RECEIVER, NEXT, 50, 1, 0, 9, "peer:1", store_index), 1)
    assert driver.sent(LateJoinInfo) == [("peer:1", LateJoinInfo(NEXT, 1, 100, 104, 0))] * (store_index == 1)
    assert driver.sent(LateJoinRequest) == []


def test_the_newest_slice_is_asked_for_first() -> None:
    driver = second_life(10 * SLICE_MESSAGES)
    driver.feed(Tick(), 1)
    assert min(first for _, _, first, _ in requests(driver)) == 9 * SLICE_MESSAGES
    assert sum(last + 1 - first for _, _, first, last in requests(driver)) == SLICE_MESSAGES


def test_the_budget_limits_what_is_asked_for() -> None:
    driver = second_life(1000, refill_rate=400, retry_ns=SECOND)
    driver.feed(Tick(), 1)
    assert sum(last + 1 - first for _, _, first, last in requests(driver)) == 100
    driver.run(NEXT, LIFE, 0, 100, recovered=True, now=2)
    driver.feed(Tick(), SECOND // 8)
    assert sum(last + 1 - first for _, _, first, last in requests(driver)) == 49


def test_a_large_message_costs_more_of_the_budget() -> None:
    budget = RefillBudget(0, 4000)
    assert budget.room(0) == 4
    budget.charge(1, 2000)
    assert budget.room(SECOND // 4) == 0
    assert budget.room(SECOND // 4 + MILLISECOND) == 1


def test_a_limited_memory_limits_what_is_asked_for() -> None:
    """Half of it stays for live messages. Otherwise a run that never fits would be asked for in vain."""
    limited = RepositoryConfig(size_limit=2 * 10 * (256 + 12))
    driver = second_life(100, repository=limited)
    driver.feed(Tick(), 1)
    assert requests(driver) == [("peer:2", 62, 90, 99)]
    driver.run(NEXT, LIFE, 90, 10, recovered=True, now=2)
    driver.sync(3)
    driver.feed(Tick(), 4)
    assert requests(driver)[-1][3] == 89, "the newest numbers come first"


def test_newer_messages_leave_a_limited_memory_before_older_ones_come_back() -> None:
    """They leave it oldest first, so what is not synced yet keeps all above it there: a run would find no room."""
    size = 256 + 12
    driver = second_life(10, repository=RepositoryConfig(size_limit=20 * size))
    for number in range(10, 30):
        driver.data(number, 1, life=NEXT, now=number, size=256)
    driver.sync(50)
    driver.feed(Tick(), 51)
    assert [one.number for one in driver.done(fx.Uncache)] == [20]
    assert requests(driver) == [("peer:2", 62, 0, 9)]
    for first, count in ((8, 2), (0, 8)):
        driver.data(first, count, life=LIFE, now=52, size=256, session=NEXT, recovered=True)
        assert driver.done(fx.Discard) == []
    assert driver.machine.status.repositories[50].lacking_numbers == []


def test_the_part_of_a_run_that_fits_is_kept() -> None:
    """100 messages of 12 bytes overhead come at once, and there is room for 40 of them: 50 do not fit, and 25 do."""
    driver = second_life(100, repository=RepositoryConfig(size_limit=40 * 12))
    driver.feed(Tick(), 1)
    driver.run(NEXT, LIFE, 0, 100, recovered=True, now=2)
    assert [(one.first, one.count) for one in driver.effects if isinstance(one, fx.PersistMessages)] == [(0, 25)]
    assert driver.machine.status.repositories[50].lacking_numbers == [(25, 100)]


def crowded() -> StoreDriver:
    """Return a store with room for one message, which an old one takes when message 10 of the new life comes."""
    driver = second_life(10, repository=RepositoryConfig(size_limit=12))
    driver.feed(Tick(), 1)
    assert requests(driver) == [("peer:2", 62, 9, 9)]
    driver.run(NEXT, LIFE, 9, 1, recovered=True, now=2)
    assert [type(one) for one in driver.run(NEXT, NEXT, 10, 1, recovered=False, now=3)] == [MessagesDropped]
    return driver


def test_a_live_message_that_a_refill_displaced_comes_again() -> None:
    """Given up, it would never be stable, and a source whose flight it fills would wait for it (T16)."""
    driver = crowded()
    assert driver.sent(LateJoinRequest) == []
    driver.sync(4)
    assert len(driver.sent(LateJoinRequest)) == 1
    driver.hear(LateJoinInfo(NEXT, 0, 10, 10), 5)
    assert [(to, one.first, one.last) for to, one in driver.sent(RetransmitRequest)] == [("source:1", 10, 10)]
    driver.run(NEXT, NEXT, 10, 1, recovered=True, now=6)
    driver.sync(7)
    assert driver.acks() == [(10, 10)]


def test_nothing_displaced_is_asked_for_before_all_that_took_its_room_is_on_disk() -> None:
    """Else it would come, and find no room again."""
    driver = second_life(10, repository=RepositoryConfig(size_limit=24))
    driver.feed(Tick(), 1)
    tickets = []
    for number in (9, 8):
        driver.run(NEXT, LIFE, number, 1, recovered=True, now=2)
        tickets += [one.ticket for one in driver.done(fx.PersistMessages)]
    driver.run(NEXT, NEXT, 10, 1, recovered=False, now=3)
    driver.feed(Persisted(tickets[0]), 4)
    assert driver.sent(LateJoinRequest) == []
    driver.feed(Persisted(tickets[1]), 5)
    assert len(driver.sent(LateJoinRequest)) == 1


def test_what_is_cut_before_it_is_on_disk_keeps_no_refill_open() -> None:
    """Its sync tells nothing any more. The refill would never end, and all live messages would have its room."""
    driver = crowded()
    third = NEXT + 1
    driver.hear(register(**SOURCE, incarnation=third), 4)
    driver.hear(info(incarnation=third, low=5, high=4, term=3, lives=((LIFE, 0), (third, 5)), stores=STORES), 5)
    refill = driver.machine.repositories[50].refill
    assert refill is not None
    assert (refill.total, refill.yields(6)) == (5, False)


def test_a_refill_yields_to_the_live_message_that_it_displaced() -> None:
    driver = crowded()
    driver.sync(4)
    assert driver.machine.status.repositories[50].lacking_numbers == [(0, 9)]
    driver.feed(Tick(), 10)
    assert [to for to, *_ in requests(driver) if to.startswith("peer")] == []
    driver.run(NEXT, LIFE, 8, 1, recovered=True, now=11)
    assert [type(effect) for effect in driver.effects] == [fx.Discard]
    driver.feed(Tick(), 3 + YIELD_NS)
    assert [to for to, *_ in requests(driver) if to.startswith("peer")] == ["peer:1"]


def test_a_live_message_without_room_comes_again_once_the_others_are_on_disk() -> None:
    """At its limit a store drops new messages (C-31). It is not deaf to them when there is room again."""
    driver = second_life(0, repository=RepositoryConfig(size_limit=12))
    driver.run(NEXT, NEXT, 0, 1, recovered=False, now=1)
    assert [type(one) for one in driver.run(NEXT, NEXT, 1, 1, recovered=False, now=2)] == [MessagesDropped]
    assert driver.sent(LateJoinRequest) == []
    driver.sync(3)
    assert len(driver.sent(LateJoinRequest)) == 1
    driver.hear(LateJoinInfo(NEXT, 0, 0, 1), 4)
    driver.run(NEXT, NEXT, 1, 1, recovered=True, now=5)
    driver.sync(6)
    assert driver.acks() == [(1, 1)]


def test_a_message_that_can_never_have_room_is_given_up_and_the_cause_is_named() -> None:
    driver = second_life(0, repository=RepositoryConfig(size_limit=11))
    told = driver.run(NEXT, NEXT, 0, 1, recovered=False, now=1)
    assert MessagesDropped(50, 0, 0) in told
    assert driver.machine.status.repositories[50].lacking.messages == {LackCause.NO_ROOM: 1}
    assert driver.sent(LateJoinRequest) == []


def test_receivers_are_served_before_stores() -> None:
    driver = second_life(0, request_rate=10)
    driver.run(NEXT, NEXT, 0, 30, recovered=False, now=1)
    driver.sync()
    for to in ("peer:1", "receiver:9"):
        driver.hear(RetransmitRequest(Role.RECEIVER, NEXT, 50, 1, 0, 9, to), 2)
    served: list[str] = []
    for now in range(1, 60):
        driver.feed(Tick(), now * SECOND // 10)
        served += [effect.to for effect in driver.effects if isinstance(effect, fx.SendStored)]
    assert served[-1] == "peer:1"
    assert served.index("receiver:9") < len(served) - served[::-1].index("receiver:9") <= served.index("peer:1", 1)


def test_a_store_that_may_not_refill_asks_nobody() -> None:
    driver = second_life(100, refill=False)
    driver.feed(Tick(), RETRY_NS)
    assert requests(driver) == []
    assert driver.machine.status.repositories[50].lacking is None


def denials(driver: StoreDriver, first: int, now: int) -> list[tuple[int, int]]:
    """Return (low, store index) of what a receiver that asks from `first` on hears, other than messages."""
    driver.hear(RetransmitRequest(Role.RECEIVER, NEXT, 50, 1, first, first, "receiver:1"), now)
    return [(one.low, one.store_index) for _, one in driver.sent(LateJoinInfo)]


def test_what_a_store_may_get_back_is_not_denied() -> None:
    """Its trail does not show it. What no peer sent in a whole round is denied."""
    driver = second_life(100)
    driver.run(NEXT, NEXT, 100, 5, recovered=False, now=1)
    driver.feed(Tick(), 1)
    assert denials(driver, 0, 1) == []
    driver.run(NEXT, LIFE, 60, 40, recovered=True, now=2)
    assert denials(driver, 0, 2) == []
    now = 2
    while driver.machine.repositories[50].refill.requests:
        now += RETRY_NS
        driver.feed(Tick(), now)
    assert denials(driver, 0, now) == [(60, 0)]
    assert denials(driver, 60, now) == []
    driver.feed(Tick(), now + AGAIN_NS)
    assert denials(driver, 0, now + AGAIN_NS) == []
