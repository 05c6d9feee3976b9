"""The request window: whose turn it is, how much at a time, and when to give up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import RetransmitRequest, Role
from stablecast.core.protocol.request_window import CHUNK_MESSAGES, MAX_REQUEST_MESSAGES, RequestWindow, Target
from tests.core.samples import LIFE, drain, sends
from tests.support.abstract_states import abstract

RETRY_NS, GIVE_UP_NS = 10, 35
STORES = [Target("a:1", 50), Target("b:1", 51)]


def requests(window: int = 200) -> RequestWindow:
    return RequestWindow(Role.RECEIVER, LIFE, "me:1", window, RETRY_NS, GIVE_UP_NS)


def asked(out: list[fx.Effect]) -> list[tuple[str, int, int]]:
    """Return the targets and the ranges requested of them, each once."""
    return [(to, m.first, m.last) for to, m in sends(drain(out)) if isinstance(m, RetransmitRequest)]


def test_a_request_says_who_asks_for_what() -> None:
    machine, out = requests(), list[fx.Effect]()
    machine.want(MODULUS - 1, MODULUS + 2)
    machine.issue(STORES[:1], 0, out)
    assert sends(out) == [("a:1", RetransmitRequest(Role.RECEIVER, LIFE, 50, 1, MODULUS - 1, 1, "me:1"))]
    assert abstract(machine) == ((), ((MODULUS - 1, MODULUS + 2),))


@pytest.mark.parametrize(("window", "sizes"), [(1000, [250] * 4), (1 << 20, [MAX_REQUEST_MESSAGES] * 3)])
def test_a_large_window_is_asked_for_in_few_requests(window: int, sizes: list[int]) -> None:
    machine, out = requests(window=window), list[fx.Effect]()
    machine.want(0, min(window, 3 * MAX_REQUEST_MESSAGES))
    machine.issue(STORES[:1], 0, out)
    assert [last + 1 - first for _, first, last in asked(out)] == sizes


def test_targets_take_turns_and_the_window_bounds_what_is_asked() -> None:
    machine, out = requests(window=CHUNK_MESSAGES + 10), list[fx.Effect]()
    machine.want(0, 3)
    machine.want(5, 5 + 2 * CHUNK_MESSAGES)
    machine.issue(STORES, 0, out)
    assert [(first, last) for _, first, last in asked(out)] == [(0, 2), (5, 4 + CHUNK_MESSAGES), (69, 75)]
    assert machine.outstanding == CHUNK_MESSAGES + 10
    machine.got(0, 3)
    machine.issue(STORES, 0, out)
    assert [(first, last) for _, first, last in asked(out)] == [(76, 78)]


@pytest.mark.rows("P-429")
def test_a_request_that_one_target_ignores_goes_to_the_next() -> None:
    """Two requests are outstanding at two targets: neither may meet the same target again and again."""
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 1)
    machine.want(5, 6)
    machine.issue(STORES, 0, out)
    turns = [asked(out)]
    for now in (RETRY_NS, 2 * RETRY_NS):
        assert machine.handle_timeout(now) == []
        machine.issue(STORES, now, out)
        turns.append(asked(out))
    a, b = (store.address for store in STORES)
    assert turns == [[(b, 0, 0), (a, 5, 5)], [(a, 0, 0), (b, 5, 5)], [(b, 0, 0), (a, 5, 5)]]


def test_a_request_that_nobody_answers_is_given_up() -> None:
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 3)
    for now in range(0, GIVE_UP_NS, RETRY_NS):
        assert machine.handle_timeout(now) == []
        machine.issue(STORES, now, out)
    assert machine.next() == 40
    assert machine.handle_timeout(39) == []
    assert machine.handle_timeout(40) == [(0, 3)]
    assert not machine
    assert machine.next() is None


def test_time_does_not_count_while_the_owner_may_not_give_up() -> None:
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 3)
    for now in range(0, 200, RETRY_NS):
        assert machine.handle_timeout(now, may_give_up=False) == []
        machine.issue(STORES, now, out)
    assert machine.handle_timeout(200) == []
    assert machine.retrying[0].since == 190


def test_time_does_not_count_while_the_process_is_stopped() -> None:
    machine, out, woken = requests(), list[fx.Effect](), 1_000
    machine.want(0, 3)
    machine.issue(STORES, 0, out)
    for now in (woken, woken + RETRY_NS, woken + 2 * RETRY_NS):
        assert machine.handle_timeout(now) == []
        machine.issue(STORES, now, out)
    assert len(asked(out)) == 4
    assert machine.handle_timeout(woken + 3 * RETRY_NS) == [(0, 3)]


def test_without_targets_everything_waits() -> None:
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 3)
    machine.issue(STORES, 0, out)
    machine.want(9, 12)
    machine.handle_timeout(RETRY_NS)
    machine.issue([], RETRY_NS, out)
    assert machine.next() is None
    assert abstract(machine) == (((0, 3), (9, 12)), ())
    drain(out)
    machine.issue(STORES, 500, out)
    assert [(first, last) for _, first, last in asked(out)] == [(0, 2), (9, 11)]
    assert machine.handle_timeout(500 + RETRY_NS) == []


def test_a_retry_larger_than_the_room_is_cut() -> None:
    machine, out = requests(window=20), list[fx.Effect]()
    machine.want(0, 20)
    machine.issue(STORES, 0, out)
    machine.handle_timeout(RETRY_NS)
    machine.window = 8
    drain(out)
    machine.issue(STORES, RETRY_NS, out)
    assert [(first, last) for _, first, last in asked(out)] == [(0, 7)]
    assert abstract(machine) == (((8, 20),), ((0, 8),))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12), st.integers(1, 40))
def test_a_missing_message_is_requested_until_it_comes(gaps: list[tuple[int, int]], window: int) -> None:
    machine, out, missing, now = requests(window), list[fx.Effect](), set[int](), 0
    for start, length in gaps:
        machine.want(start, start + length)
        missing |= set(range(start, start + length))
    seen: set[int] = set()
    while machine:
        machine.issue(STORES, now, out)
        assert 0 < machine.outstanding <= window
        for _, first, last in asked(out):
            seen |= set(range(first, last + 1))
        [first, *_] = [request.start for request in machine.asked]
        machine.got(first, first + 1)
        now += 1
    assert seen == missing


def test_an_arrived_message_is_cut_out_of_every_request() -> None:
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 10)
    machine.issue(STORES, 0, out)
    machine.got(3, 5)
    assert abstract(machine)[1] == ((0, 3), (5, 10))
    machine.got(4, 20)
    assert abstract(machine)[1] == ((0, 3),)
    assert machine.outstanding == 3


def test_a_denied_request_goes_on_at_once_and_what_all_deny_is_void() -> None:
    """However far it reaches; where the targets differ, the next one that has something counts."""
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 3)
    machine.issue(STORES, 0, out)
    assert asked(out) == [("b:1", 0, 2)]
    assert machine.deny(1, 4000) == []
    machine.issue(STORES, 1, out)
    assert asked(out) == [("a:1", 0, 2)]
    assert machine.deny(2, 3000) == [(0, 3000)]
    machine.issue(STORES, 2, out)
    assert asked(out) == []  # In its time.
    assert machine.handle_timeout(1 + RETRY_NS) == []
    machine.issue(STORES, 1 + RETRY_NS, out)
    assert asked(out) == [("b:1", 0, 2)]
    assert machine.deny(3, 2) == [(0, 2)]  # It has a part of it now.
    assert abstract(machine) == ((), ((0, 2), (2, 3)))
    assert machine.deny(2, 4000) == [(0, 2)]


@pytest.mark.parametrize(("whole", "lost"), [(True, (0, 3000)), (False, (0, 3))])
def test_what_is_denied_is_given_up_as_a_whole_if_nobody_else_is_asked(whole: bool, lost: tuple[int, int]) -> None:
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 3)
    machine.issue(STORES, 0, out)
    machine.deny(1, 4000)
    machine.issue(STORES, 0, out)
    machine.deny(2, 3000)
    for now in range(0, GIVE_UP_NS, RETRY_NS):
        assert machine.handle_timeout(now, whole=whole) == []
        machine.issue(STORES, now, out)
    assert machine.handle_timeout(now + RETRY_NS, whole=whole) == [lost]


def test_a_target_that_came_is_asked_whatever_the_others_denied() -> None:
    """It may have given them what they denied, so they are asked again as well."""
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 3)
    machine.issue(STORES[:1], 0, out)
    assert machine.deny(1, 4000) == [(0, 4000)]
    machine.handle_timeout(RETRY_NS)
    machine.issue(STORES, RETRY_NS, out)
    assert asked(out) == [("a:1", 0, 2), ("a:1", 0, 2)]
    assert machine.deny(2, 4000) == []
    machine.issue(STORES, RETRY_NS, out)
    assert asked(out) == [("b:1", 0, 2)]
    assert machine.deny(3, 9) == [(0, 9)]


def test_a_denial_that_comes_after_the_next_try_counts() -> None:
    machine, out = requests(), list[fx.Effect]()
    machine.want(0, 3)
    machine.issue(STORES, 0, out)
    machine.handle_timeout(RETRY_NS)
    machine.issue(STORES, RETRY_NS, out)
    assert machine.deny(1, 3000) == []
    machine.issue(STORES, RETRY_NS, out)
    assert machine.deny(2, 4000) == [(0, 3000)]
    assert machine.deny(77, 4000) == []  # Nobody asked this.
