"""Trap T23: two stores that both stand."""

import pytest

from stablecast.core.protocol.effects import StopProxy
from stablecast.core.store.proxy_election import ElectionState
from tests.core.stations import ACTIVITY, HIGHEST, Station


@pytest.mark.rows("P-554")
def test_t23_proxy_election() -> None:
    """T23: one proxy remains once both saw each other's registration; the source ends it."""
    stores = [Station(seed, seed) for seed in range(2)]
    tokens = [store.stand()[0] for store in stores]
    now = max(store.machine.timers.next() or 0 for store in stores)
    for store in stores:
        for token in tokens:
            store.proxy(token, now)
    standing = [store.machine.ours for store in stores]
    winner = tokens.index(min(tokens, key=lambda token: token.rank))
    assert standing == [index == winner for index in range(2)]
    assert stores[winner].machine.holder == stores[1 - winner].machine.holder == tokens[winner]

    stores[winner].out.clear()
    assert stores[winner].proxy(tokens[winner], now)
    assert stores[winner].out == []

    for store in stores:
        store.source(now)
        assert store.state is ElectionState.WATCHING
        assert not store.proxy(HIGHEST, now)
    assert StopProxy(50) in stores[winner].out
    assert now > ACTIVITY
