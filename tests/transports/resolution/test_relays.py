"""Which relay is used: turns, silence, and keepalives."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.units import SECOND
from stablecast.transports.resolution.relays import ACTIVITY_TIMEOUT, KEEPALIVE_INTERVAL, MAX_RELAYS, Relays

A, B, C = "10.0.0.1:15380", "10.0.0.2:15380", "10.0.0.3:15380"


def started(*addresses: str) -> Relays:
    relays = Relays(addresses)
    relays.start(0)
    return relays


def test_nothing_to_do_before_the_start_and_after_the_stop() -> None:
    relays = Relays((A, B))
    assert (relays.next(), relays.take_keepalives(0), relays.running) == (None, (), False)
    relays.handle_timeout(100 * SECOND)
    assert relays.current == A
    relays.start(0)
    relays.stop()
    relays.on_heard(A, 1)
    assert (relays.next(), relays.take_keepalives(0), relays.running) == (None, (), False)


def test_keepalives_go_to_all_relays_at_once_and_every_interval() -> None:
    relays = started(A, B)
    assert relays.take_keepalives(0) == (A, B)
    assert relays.take_keepalives(KEEPALIVE_INTERVAL - 1) == ()
    assert relays.next() == KEEPALIVE_INTERVAL
    assert relays.take_keepalives(KEEPALIVE_INTERVAL) == (A, B)


def test_the_first_one_that_answers_is_used() -> None:
    relays = started(A, B, C)
    relays.on_heard(B, 5)
    relays.on_heard(C, 6)
    assert relays.current == B
    relays.on_heard(A, 7)
    assert relays.current == B


def test_a_silent_relay_hands_over_to_the_next_active_one() -> None:
    relays = started(A, B, C)
    relays.on_heard(A, 0)
    relays.on_heard(C, 5 * SECOND)
    relays.handle_timeout(ACTIVITY_TIMEOUT - 1)
    assert relays.current == A
    relays.handle_timeout(ACTIVITY_TIMEOUT)
    assert relays.current == C
    assert relays.turn_ends == 5 * SECOND + ACTIVITY_TIMEOUT


def test_keepalive_answers_keep_the_turn() -> None:
    relays = started(A, B)
    for second in range(0, 100, 5):
        relays.handle_timeout(second * SECOND)
        relays.on_heard(A, second * SECOND)
    assert relays.current == A


def test_when_none_is_active_each_has_its_turn_until_one_answers() -> None:
    relays = started(A, B)
    seen = []
    for turn in range(1, 5):
        relays.handle_timeout(turn * ACTIVITY_TIMEOUT)
        seen.append(relays.current)
    assert seen == [B, A, B, A]
    relays.on_heard(B, 4 * ACTIVITY_TIMEOUT + 1)
    assert relays.current == B


def test_a_single_relay_is_never_given_up() -> None:
    relays = started(A)
    relays.handle_timeout(ACTIVITY_TIMEOUT)
    assert (relays.current, relays.turn_ends) == (A, 2 * ACTIVITY_TIMEOUT)


@pytest.mark.parametrize("count", [0, MAX_RELAYS + 1])
def test_no_relay_and_too_many_relays_are_refused(count: int) -> None:
    with pytest.raises(MisuseError, match=f"not {count}"):
        Relays(tuple(f"10.0.0.{number}:15380" for number in range(count)))
