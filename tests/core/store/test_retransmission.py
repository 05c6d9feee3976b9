"""The retransmission service: rate, queue, counters, forwarding."""

from typing import Any

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import RequestsDropped
from stablecast.core.protocol.messages import LateJoinInfo, RetransmitRequest, Role
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES
from stablecast.core.store.extents import OVERHEAD_BYTES
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from stablecast.core.store.retransmission import QUEUE_RATES, RetransmissionService
from tests.core.drivers import RepositoryDriver, code
from tests.core.samples import LIFE, drain, events, sends


def shop(count: int = 100, **terms: Any) -> dict[int, Repository]:
    driver = RepositoryDriver(terms=Terms(**terms))
    driver.data(0, count)
    return {50: driver.machine}


def request(first: int, last: int, to: str = "receiver:1") -> RetransmitRequest:
    return RetransmitRequest(Role.RECEIVER, LIFE, 50, 9, first, last, to)


def served(serving: RetransmissionService, kept: dict[int, Repository], now: int) -> list[tuple[int, int]]:
    out: list[fx.Effect] = []
    serving.serve(kept, now, out)
    return [(effect.first, effect.last) for effect in out if isinstance(effect, fx.SendStored)]


@pytest.mark.rows("P-406", "P-407", "P-816")
def test_requests_leave_as_fast_as_the_rate_allows() -> None:
    """An idle service has saved a tenth of a second."""
    serving, kept, out = RetransmissionService(rate=100), shop(), list[fx.Effect]()
    serving.on_request(request(0, 19), kept[50], out)
    serving.on_request(request(20, 29, "other:1"), kept[50], out)
    assert out == []
    assert served(serving, kept, SECOND) == [(0, 9)]
    assert serving.next() == SECOND + 10 * MILLISECOND
    assert served(serving, kept, SECOND + 9 * MILLISECOND) == []
    assert served(serving, kept, SECOND + 60 * MILLISECOND) == [(10, 15)]
    assert served(serving, kept, 2 * SECOND) == [(16, 19), (20, 25)]
    assert served(serving, kept, 3 * SECOND) == [(26, 29)]
    assert (serving.next(), serving.served, serving.queued) == (None, 30, 0)


def test_a_busy_service_wakes_at_its_pace() -> None:
    serving, kept = RetransmissionService(rate=100_000), shop(MAX_REQUEST_MESSAGES)
    for index in range(4):
        serving.on_request(request(0, MAX_REQUEST_MESSAGES - 1, f"receiver:{index}"), kept[50], [])
    assert serving.next() is None
    served(serving, kept, 0)
    assert serving.next() == 5 * MILLISECOND


@pytest.mark.rows("P-408", "P-409", "P-904", "P-905", "P-906")
def test_requests_at_a_full_queue_are_dropped() -> None:
    """The queue holds four seconds; the total of what was dropped is never reset."""
    serving, kept, out = RetransmissionService(rate=10), shop(), list[fx.Effect]()
    serving.on_request(request(0, 29), kept[50], out)
    assert out == []
    serving.on_request(request(0, 29, "other:1"), kept[50], out)
    serving.on_request(request(0, 4, "third:1"), kept[50], out)
    assert events(out) == [RequestsDropped(20), RequestsDropped(5)]
    assert serving.queued == QUEUE_RATES * 10
    assert served(serving, kept, SECOND) == [(0, 0)]
    assert (serving.received, serving.served, serving.dropped, serving.dropped_since_start) == (65, 1, 25, 25)
    assert serving.rates(5 * SECOND) == (13, 0.2, 5)
    serving.reset(6 * SECOND)
    assert serving.rates(7 * SECOND) == (0, 0, 0)
    assert serving.dropped_since_start == 25


def test_a_repeated_request_waits_once() -> None:
    """A slow service is asked again before it answers: it would send the same messages again, and others too late."""
    serving, kept, out = RetransmissionService(rate=10), shop(), list[fx.Effect]()
    for _ in range(9):
        serving.on_request(request(0, 9), kept[50], out)
    serving.on_request(request(5, 24), kept[50], out)
    serving.on_request(request(0, 4, "other:1"), kept[50], out)
    assert (out, serving.queued, serving.dropped) == ([], 30, 0)
    assert [served(serving, kept, second * SECOND) for second in range(3)] == [[(0, 0)], [(1, 1)], [(2, 2)]]
    serving.on_request(request(0, 9), kept[50], out)
    assert serving.queued == 30
    for tick in range(300):
        served(serving, kept, 3 * SECOND + tick * 100 * MILLISECOND)
    assert (serving.served, serving.queued, serving.waiting) == (33, 0, {})


def test_a_rate_of_nothing_serves_nothing() -> None:
    serving, kept, out = RetransmissionService(rate=0), shop(), list[fx.Effect]()
    serving.on_request(request(0, 4), kept[50], out)
    assert events(out) == [RequestsDropped(5)]
    assert (serving.next(), served(serving, kept, SECOND)) == (None, [])


@pytest.mark.rows("P-404", "P-405", "P-819")
def test_requests_for_absent_messages_go_on_to_the_source() -> None:
    """The source answers the receiver directly; what is held is not forwarded."""
    serving, out = RetransmissionService(rate=1000), list[fx.Effect]()
    driver = RepositoryDriver(resume=2, terms=Terms(forwarding=True))
    driver.data(5, 5)
    serving.on_request(request(2, 11), driver.machine, out)
    asked = [RetransmitRequest(Role.STORE, LIFE, 0, 9, first, last, "receiver:1") for first, last in ((2, 4), (10, 11))]
    assert sends(out) == [("source:1", message) for message in asked]
    assert served(serving, {50: driver.machine}, 0) == [(5, 9)]


@pytest.mark.rows("P-404", "P-819")
def test_requests_that_nobody_can_serve_are_counted() -> None:
    serving, kept, out = RetransmissionService(rate=1000), shop(10), list[fx.Effect]()
    serving.on_request(request(5, 14), kept[50], out)
    assert (out, serving.unserved, serving.received) == ([], 5, 10)


@pytest.mark.parametrize("change", ["gone", "life", "cut"])
def test_messages_released_meanwhile_are_passed_over(change: str) -> None:
    serving, kept = RetransmissionService(rate=1000), shop(10)
    serving.on_request(request(0, 9), kept[50], [])
    if change == "gone":
        kept = {}
    elif change == "life":
        kept[50].begin_life(9, "source:1", 0)
    else:
        kept[50].window.held.remove(3, 5)
    assert served(serving, kept, 0) == ([(0, 2), (5, 9)] if change == "cut" else [])
    assert serving.queued == 0


@pytest.mark.parametrize(("first", "last"), [(1, 0), (0, MAX_REQUEST_MESSAGES)])
def test_wild_requests_are_dropped(first: int, last: int) -> None:
    serving, kept, out = RetransmissionService(rate=10), shop(), list[fx.Effect]()
    serving.on_request(request(first, last), kept[50], out)
    assert code(events(drain(out))) == ["wild-request"]
    assert serving.queued == 0


def denied(kept: dict[int, Repository], first: int, *, refill: bool = False) -> list[LateJoinInfo]:
    out: list[fx.Effect] = []
    RetransmissionService(rate=10_000).on_request(request(first, first + 9), kept[50], out, refill=refill)
    return [message for _, message in sends(out) if isinstance(message, LateJoinInfo)]


def test_a_request_for_what_a_limit_let_go_is_denied_up_to_what_there_is() -> None:
    driver = RepositoryDriver(terms=Terms(disk_limit=4_000))
    driver.data(0, 10, size=1_000 - OVERHEAD_BYTES)
    driver.sync()
    kept = {50: driver.machine}
    assert kept[50].trail == 6
    assert denied(kept, 0) == denied(kept, 5) == [LateJoinInfo(LIFE, 9, 6, 9, store_index=2)]
    assert denied(kept, 6) == []
    assert denied(kept, 10) == []  # It may still come.
    assert denied(kept, 0, refill=True) == []  # Stores of earlier releases would take it for the source's.


def test_a_store_that_forwards_denies_what_the_source_has_not_either() -> None:
    driver = RepositoryDriver(terms=Terms(forwarding=True))
    driver.data(5, 10)
    driver.machine.filling.give_up(0, 5)
    kept = {50: driver.machine}
    assert denied(kept, 0) == []
    driver.machine.on_late_join(LateJoinInfo(LIFE, 50, 3, 14), 0, driver.out)
    assert denied(kept, 0) == [LateJoinInfo(LIFE, 9, 3, 14, store_index=2)]
    assert denied(kept, 3) == []


def test_a_hole_that_the_source_may_fill_is_not_denied() -> None:
    driver = RepositoryDriver()
    driver.data(0, 5)
    driver.data(20, 5)
    kept = {50: driver.machine}
    assert denied(kept, 5) == []
    driver.machine.on_late_join(LateJoinInfo(LIFE, 50, 15, 24), 0, driver.out)
    assert denied(kept, 5) == [LateJoinInfo(LIFE, 9, 15, 24, store_index=2)]
    driver.machine.filling.give_up(15, 20)
    assert denied(kept, 5) == [LateJoinInfo(LIFE, 9, 20, 24, store_index=2)]


def test_nothing_is_denied_before_the_life_announced_where_it_resumes() -> None:
    driver = RepositoryDriver(resume=None)
    assert denied({50: driver.machine}, 0) == []
