"""Proxy elections where a quorum of stores that have state of the source is required."""

import pytest

from stablecast.core.protocol.effects import StopProxy
from stablecast.core.protocol.messages import ElectionToken
from stablecast.core.store.proxy_election import MAX_DOUBLINGS, TOKEN_VALUES, ElectionState
from tests.core.samples import LIFE, drain
from tests.core.stations import ACTIVITY, INTERVAL, LOWEST, Station

S = ElectionState


def quorate() -> Station:
    return Station(quorum=True)


def state(station: Station) -> ElectionState:
    return station.state


@pytest.mark.rows("P-554")
def test_a_proxy_that_needs_a_quorum_serves_when_it_has_it_and_has_registered_here() -> None:
    """C-40: in either order."""
    first = quorate()
    token, now = first.stand()
    assert first.proxy(token, now)
    assert state(first) is S.STANDING
    first.tell(token, now)
    assert state(first) is S.SERVING
    assert first.machine.timers.next() is None
    last = quorate()
    token, now = last.stand()
    last.tell(token, now)
    assert state(last) is S.STANDING
    assert last.proxy(token, now)
    assert state(last) is S.SERVING


def test_the_registration_of_an_earlier_proxy_is_not_that_of_ours() -> None:
    """C-40: that of another store fell silent. Ours has its quorum elsewhere, and serves once it registered here."""
    station = quorate()
    station.silent()
    assert station.proxy(LOWEST, ACTIVITY)
    turn = station.silent(2 * ACTIVITY)
    station.check(turn)
    token = station.machine.holder
    assert token is not None
    station.tell(token, turn)
    assert state(station) is S.STANDING
    assert station.proxy(token, turn)
    assert state(station) is S.SERVING


def test_a_proxy_without_the_quorum_it_needs_ends_and_each_try_waits_twice_as_long() -> None:
    """C-40: what keeps the stores away may last, so the waits grow, up to a bound."""
    station = quorate()
    turn = station.silent()
    for doublings in [*range(1, MAX_DOUBLINGS + 1), MAX_DOUBLINGS]:
        station.check(turn)
        token = station.machine.holder
        assert token is not None
        assert station.proxy(token, turn)
        drain(station.out)
        over = turn + INTERVAL
        turn = station.silent(over)
        assert station.out[0] == StopProxy(50)
        assert "too few stores" in str(station.out[1])
        assert INTERVAL << doublings <= 2 * (turn - over) <= 3 * INTERVAL << doublings


@pytest.mark.rows("P-541", "P-548")
@pytest.mark.parametrize("back", [False, True])
def test_a_registration_of_anybody_else_has_the_waits_begin_anew(back: bool) -> None:
    """C-40."""
    station = quorate()
    station.check(station.silent())
    turn = station.silent(station.machine.timers.next() or 0)
    if back:
        station.source(turn)
    else:
        assert station.proxy(LOWEST, turn)
    turn += ACTIVITY
    assert 2 * (station.silent(turn) - turn) <= 3 * INTERVAL


def test_a_proxy_that_loses_its_quorum_ends_and_the_election_begins_anew() -> None:
    """C-40. News of an earlier proxy are late."""
    station = quorate()
    token, now = station.stand()
    assert station.proxy(token, now)
    station.tell(token, now)
    drain(station.out)
    station.tell(ElectionToken(TOKEN_VALUES, 0, LIFE), now, held=False)
    assert state(station) is S.SERVING
    station.tell(token, now, held=False)
    assert state(station) is S.WAITING
    assert station.out[0] == StopProxy(50)
    assert "lost the quorum" in str(station.out[1])
    station.tell(token, now)
    assert state(station) is S.WAITING


def test_a_quorum_lost_before_it_counted_is_no_end_and_none_without_it() -> None:
    """C-40: until its time is over our proxy may still get it again; one that needs none is not asked."""
    station = quorate()
    token, now = station.stand()
    station.tell(token, now)
    station.tell(token, now, held=False)
    assert state(station) is S.STANDING
    assert station.proxy(token, now)
    assert state(station) is S.STANDING
    station.tell(token, now)
    assert state(station) is S.SERVING
    plain = Station()
    token, now = plain.serve()
    plain.tell(token, now, held=False)
    assert state(plain) is S.SERVING


def test_a_proxy_with_a_quorum_that_does_not_register_here_says_so() -> None:
    station = quorate()
    token, now = station.stand()
    station.tell(token, now)
    drain(station.out)
    station.check(now + INTERVAL)
    assert "did not register in time" in str(station.out[1])
