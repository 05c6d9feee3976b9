"""Repair.ELECTION (formal design, 7.9): what goes wrong with the documented rule, and not with the repaired one."""

import pytest

from stablecast.core.protocol.messages import ElectionToken
from stablecast.core.store.proxy_election import ElectionState
from tests.core.samples import LIFE, OLDER_LIFE
from tests.core.stations import ACTIVITY, Station

both_rules = pytest.mark.parametrize("repaired", [False, True])


@both_rules
def test_a_proxy_never_takes_the_reg_id_of_a_source_that_is_active_here(repaired: bool) -> None:
    """Another store was cut off from the source and stands. Where the source lives, its registration must not move."""
    store = Station(repaired=repaired)
    assert store.proxy(ElectionToken(1, 1, LIFE), ACTIVITY - 1) is not repaired
    assert (store.state is ElectionState.WATCHING) is repaired


@both_rules
def test_a_late_proxy_of_an_older_life_does_not_delay_the_election(repaired: bool) -> None:
    """The source returned and failed again; then the registration of a proxy for its former life arrives."""
    store = Station(repaired=repaired, life=OLDER_LIFE)
    store.silent()
    store.source(ACTIVITY, LIFE)
    turn = store.silent(2 * ACTIVITY)
    late = ElectionToken(1, 1, OLDER_LIFE)
    assert store.proxy(late, turn - 1) is not repaired
    store.check(turn)
    assert store.machine.ours is repaired


@both_rules
def test_one_of_two_equal_values_remains(repaired: bool) -> None:
    """The index of the store decides; by the value alone none of the two would ever give way."""
    stores = [Station(1, index, repaired=repaired) for index in range(2)]
    tokens = [store.stand()[0] for store in stores]
    assert tokens[0].value == tokens[1].value
    for store in stores:
        for token in tokens:
            store.proxy(token, 2 * ACTIVITY)
    assert sum(store.machine.ours for store in stores) == (1 if repaired else 2)


def test_a_restart_begins_the_wait_anew() -> None:
    """A store that forgot that it waited would never stand: the activity timeout of the source is over only once."""
    token, now = Station().serve()
    restarted = Station()
    restarted.resume(token, now)
    turn = restarted.machine.timers.next()
    assert turn is not None
    restarted.check(turn)
    assert restarted.machine.ours
