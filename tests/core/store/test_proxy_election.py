"""Proxy elections: who stands, who gives way, and that one remains."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.protocol.effects import StartProxy, StopProxy
from stablecast.core.protocol.events import ProxyEnded, ProxyStarted
from stablecast.core.protocol.messages import ElectionToken, Pace, StoreEntry, Wishes
from stablecast.core.store.proxy_election import MAX_PAST, ElectionState
from tests.core.samples import LIFE, OLDER_LIFE, SECOND, drain, events
from tests.core.stations import ACTIVITY, HIGHEST, INTERVAL, LOWEST, Station
from tests.support.abstract_states import abstract

S = ElectionState


@pytest.mark.rows("P-547", "P-552", "P-838")
@given(st.integers(0, 1 << 64), st.integers(1, 100))
def test_the_wait_is_between_half_and_one_and_a_half_intervals(seed: int, interval: int) -> None:
    """Counted from when the source is seen to be silent."""
    station = Station(seed, interval_ns=interval)
    station.check(ACTIVITY - 1)
    assert station.state is S.WATCHING
    turn = station.silent()
    assert interval <= 2 * (turn - ACTIVITY) <= 3 * interval


@pytest.mark.rows("P-540", "P-546", "P-553", "P-951")
def test_a_store_stands_when_its_turn_comes() -> None:
    """With all that a proxy needs, and a token of its own for the life it stands in for."""
    station = Station()
    station.check(station.silent() - 1)
    assert station.state is S.WAITING
    token, _ = Station().stand()
    station.stand()
    client = station.record.client
    start = StartProxy(50, "topic", 3, token, client.stores, (1,), Pace.SOURCE, Wishes(flight_bytes=9))
    assert station.out[0] == start
    assert events(station.out) == [ProxyStarted(50)]
    assert token.store_index == 0
    assert token.life == LIFE
    assert abstract(station.machine) == ("STANDING", token.rank, LIFE)


def test_a_store_that_does_not_know_the_stores_of_the_source_waits_on() -> None:
    station = Station()
    station.record.client = attrs.evolve(station.record.client, stores=())
    turn = station.silent()
    station.check(turn)
    assert station.state is S.WAITING
    assert station.machine.timers.next() != turn
    assert station.out == []


@pytest.mark.rows("P-550")
def test_a_store_that_may_not_stand_only_follows() -> None:
    """But it knows whom. Without a state lifetime it keeps the state only while a proxy has the RegID."""
    station = Station(may_stand=False, lifetime_ns=30 * SECOND)
    station.silent()
    assert not station.check(29 * SECOND)
    assert station.proxy(HIGHEST, 29 * SECOND)
    assert station.check(30 * SECOND)
    bare = Station(may_stand=False)
    assert bare.check(ACTIVITY)
    later = Station(may_stand=False)
    assert not later.check(ACTIVITY - 1)


@pytest.mark.rows("P-548", "P-553")
def test_the_registration_of_another_stores_proxy_ends_the_wait() -> None:
    """And the store's own turn never comes while that proxy lives; P-548: it does when it falls silent."""
    station = Station()
    station.silent()
    assert station.proxy(HIGHEST, ACTIVITY)
    assert station.state is S.FOLLOWING
    assert station.machine.timers.next() is None
    station.check(2 * ACTIVITY - 1)
    assert station.state is S.FOLLOWING
    assert station.silent(2 * ACTIVITY) > 2 * ACTIVITY
    assert station.machine.holder is None


@pytest.mark.rows("P-554", "P-555")
@pytest.mark.parametrize("serving", [False, True])
def test_a_store_that_stands_gives_way_to_a_lower_token_only(serving: bool) -> None:
    """C-14, T23."""
    station = Station()
    _, now = station.serve() if serving else station.stand()
    drain(station.out)
    assert not station.proxy(HIGHEST, now)
    assert station.machine.ours
    assert station.proxy(LOWEST, now)
    assert station.state is S.FOLLOWING
    assert station.out[0] == StopProxy(50)
    assert isinstance(events(station.out)[0], ProxyEnded)


@pytest.mark.rows("P-554")
def test_a_store_that_follows_moves_to_a_lower_token_only() -> None:
    """The proxy it follows may register again."""
    station = Station()
    station.silent()
    middle = ElectionToken(5, 5, LIFE)
    assert station.proxy(middle, ACTIVITY)
    assert not station.proxy(ElectionToken(5, 6, LIFE), ACTIVITY)
    assert station.proxy(middle, ACTIVITY)
    assert station.proxy(ElectionToken(5, 4, LIFE), ACTIVITY)
    assert abstract(station.machine) == ("FOLLOWING", (5, 4), LIFE)
    assert station.out == []


def test_its_own_token_is_no_news_and_when_that_proxy_has_ended_it_is_late() -> None:
    """T23."""
    station = Station()
    token, now = station.serve()
    assert station.proxy(token, now)
    assert station.state is S.SERVING
    assert station.out == []
    now = station.silent(now + ACTIVITY)
    assert not station.proxy(token, now)


@pytest.mark.parametrize("serving", [False, True])
@pytest.mark.parametrize(("failed", "why"), [(False, "a later life was counted"), (True, "it failed")])
def test_our_proxy_ends_when_a_later_life_was_counted_or_it_failed(serving: bool, failed: bool, why: str) -> None:
    """It could announce nothing more. Nobody waits for the end of its lease, and what it still asks for is late."""
    station = Station()
    token, now = station.serve() if serving else station.stand()
    drain(station.out)
    station.over(HIGHEST, now, failed=failed)
    assert station.machine.ours
    station.over(token, now, failed=failed)
    assert station.state is S.WAITING
    assert station.out[0] == StopProxy(50)
    (ended,) = events(station.out)
    assert isinstance(ended, ProxyEnded)
    assert ended.text.endswith(why)
    assert 2 * ((station.machine.timers.next() or 0) - now) in range(INTERVAL, 3 * INTERVAL + 1)
    assert not station.proxy(token, now)
    station.over(token, now, failed=failed)
    assert station.proxy(HIGHEST, now)


def test_the_memory_of_ended_proxies_is_bounded() -> None:
    station = Station()
    turn = station.silent()
    for _ in range(MAX_PAST + 1):
        station.check(turn)
        turn = station.silent(turn + INTERVAL)
    assert len(station.machine.ended) == MAX_PAST


@pytest.mark.rows("P-541", "P-546")
@pytest.mark.parametrize("serving", [False, True])
def test_the_source_takes_its_reg_id_back_from_our_proxy(serving: bool) -> None:
    """In the same step the proxy ends."""
    station = Station()
    _, now = station.serve() if serving else station.stand()
    drain(station.out)
    station.source(now, LIFE + 1)
    assert station.state is S.WATCHING
    assert station.machine.timers.next() is None
    assert station.out[0] == StopProxy(50)
    assert abstract(station.machine) == ("WATCHING", None, LIFE + 1)


@pytest.mark.rows("P-541")
def test_the_source_takes_its_reg_id_back_from_the_proxy_of_another_store() -> None:
    station = Station()
    station.silent()
    station.proxy(LOWEST, ACTIVITY)
    station.source(ACTIVITY)
    assert station.state is S.WATCHING
    assert station.out == []


@pytest.mark.rows("P-538")
@pytest.mark.parametrize("standing", [False, True])
def test_a_sign_of_life_of_the_source_ends_the_election(standing: bool) -> None:
    """It was slow, not gone, and need not register again."""
    station = Station()
    now = station.stand()[1] if standing else station.silent()
    drain(station.out)
    station.record.lifetime.on_heard(now)
    station.check(now)
    assert station.state is S.WATCHING
    assert bool(station.out) is standing


@pytest.mark.rows("P-538", "P-548")
def test_a_sign_of_life_of_a_proxy_that_was_thought_silent_brings_it_back() -> None:
    """Unless we stand by then, when its next registration and ours decide."""
    station = Station()
    station.silent()
    station.proxy(HIGHEST, ACTIVITY)
    turn = station.silent(2 * ACTIVITY)
    station.record.lifetime.on_heard(turn)
    station.check(turn)
    assert station.state is S.FOLLOWING
    turn = station.silent(turn + ACTIVITY)
    station.check(turn)
    station.record.lifetime.on_heard(turn)
    station.check(turn)
    assert station.machine.ours


@pytest.mark.rows("P-548")
def test_our_proxy_that_falls_silent_ends_and_the_election_begins_anew() -> None:
    """A sign of life of the old one changes nothing then."""
    station = Station()
    token, now = station.serve()
    turn = station.silent(now + ACTIVITY)
    assert station.out[0] == StopProxy(50)
    station.record.lifetime.on_heard(now + ACTIVITY)
    station.check(turn)
    assert station.state is S.STANDING
    assert station.machine.holder != token


def test_our_proxy_that_does_not_register_in_time_ends_and_the_election_begins_anew() -> None:
    station = Station()
    _, now = station.stand()
    drain(station.out)
    station.check(now + INTERVAL - 1)
    assert station.out == []
    station.check(now + INTERVAL)
    assert station.state is S.WAITING
    assert [type(effect) for effect in station.out][:1] == [StopProxy]


@pytest.mark.rows("P-533")
def test_the_state_lifetime_counts_from_the_source_and_ends_the_proxy() -> None:
    """T7: whatever the proxy does in between."""
    station = Station(lifetime_ns=60 * SECOND)
    station.serve()
    for now in range(20, 60, 5):
        station.record.lifetime.on_heard(now * SECOND)
        assert not station.check(now * SECOND)
    assert station.check(60 * SECOND)
    station.machine.forget(station.record, station.out)
    assert station.out[0] == StopProxy(50)


@pytest.mark.rows("P-533")
def test_a_state_lifetime_below_the_activity_timeout_ends_with_it() -> None:
    """T7."""
    station = Station(lifetime_ns=1)
    assert not station.check(ACTIVITY - 1)
    assert station.check(ACTIVITY)
    station.machine.forget(station.record, station.out)
    assert station.out == []


@pytest.mark.rows("P-533", "P-547")
def test_a_process_that_is_known_to_have_ended_is_replaced_at_once() -> None:
    """But its state goes no earlier than otherwise."""
    station = Station(lifetime_ns=1)
    station.record.lifetime.on_gone(0)
    assert not station.check(0)
    assert station.state is S.WAITING
    assert not station.check(ACTIVITY - 1)
    assert station.check(ACTIVITY)


@pytest.mark.rows("P-535")
def test_without_a_state_lifetime_the_state_is_kept() -> None:
    """T7: a store that may run a proxy keeps what the proxy is for."""
    station = Station()
    station.silent()
    assert not any(station.check(now * SECOND) for now in range(10, 1000, 7))


@pytest.mark.rows("P-530")
def test_a_state_lifetime_ends_with_the_return_of_the_source() -> None:
    station = Station(lifetime_ns=60 * SECOND)
    station.silent()
    station.source(59 * SECOND)
    assert not station.check(61 * SECOND)


def test_after_a_restart_our_proxy_is_gone_and_another_may_live() -> None:
    """C-37; formal design, 7.9: timers begin anew, and a wait with them."""
    other, own = Station(), Station()
    other.resume(HIGHEST)
    own.resume(ElectionToken(1, 0, LIFE))
    for _ in range(2):
        assert (other.state, own.state) == (S.FOLLOWING, S.WAITING)
        own.check(1)
    turn = own.machine.timers.next()
    assert turn is not None
    own.check(turn)
    assert own.machine.ours
    bare = Station(may_stand=False)
    bare.resume(ElectionToken(1, 0, LIFE))
    assert bare.proxy(HIGHEST, ACTIVITY - 1)
    assert not bare.check(ACTIVITY)


def test_lives_that_are_over_are_remembered_up_to_a_bound() -> None:
    station = Station(life=1)
    for life in range(2, 100):
        station.source(0, life)
        station.source(0, life - 1)
        station.source(0, 0)
    assert station.machine.life == 99
    assert station.machine.past == list(range(99 - MAX_PAST, 99))


def test_a_life_that_this_store_missed_is_learnt_from_a_proxy() -> None:
    """Formal design, 7.9. A token that names no life is never late."""
    station = Station(life=0)
    station.silent()
    assert station.proxy(ElectionToken(9, 9), ACTIVITY)
    assert station.proxy(ElectionToken(8, 8, OLDER_LIFE), ACTIVITY)
    assert station.proxy(ElectionToken(7, 7, LIFE), ACTIVITY)
    assert station.machine.past == [OLDER_LIFE]
    assert station.proxy(ElectionToken(6, 6, OLDER_LIFE), ACTIVITY), "between two proxies tokens alone decide"
    assert station.proxy(ElectionToken(5, 5), ACTIVITY)
    station.check(3 * ACTIVITY)
    assert station.state is ElectionState.WAITING
    assert not station.proxy(ElectionToken(4, 4, OLDER_LIFE), 3 * ACTIVITY)
    assert station.proxy(ElectionToken(4, 4, LIFE), 3 * ACTIVITY)


def test_a_store_that_its_source_never_named_does_not_stand() -> None:
    """Its own proxy would never register with it (formal design, 7.9)."""
    station = Station(index=1)
    station.record.client = attrs.evolve(station.record.client, stores=(StoreEntry(0, 0, "store0:1", 50, 1),))
    station.check(station.silent())
    assert station.state is ElectionState.WAITING


class World:
    """Stores, their proxies, and a network that loses, delays and reorders registrations while there are faults."""

    TICK = SECOND // 2

    def __init__(self, data: st.DataObject, size: int) -> None:
        self.data, self.now, self.faulty = data, 0, True
        self.stations = [Station(seed, seed) for seed in range(size)]
        self.network: list[tuple[int, ElectionToken]] = []

    def tick(self) -> None:
        self.now += self.TICK
        for station in self.stations:
            station.check(self.now)
            if station.machine.ours and station.machine.holder is not None:
                self.network += [(index, station.machine.holder) for index in range(len(self.stations))]
        draw = self.data.draw if self.faulty else None
        kept: list[tuple[int, ElectionToken]] = []
        while self.network:
            fate = 0 if draw is None else draw(st.integers(0, 3))
            index, token = self.network.pop(0 if draw is None else draw(st.integers(0, len(self.network) - 1)))
            if fate == 0:
                self.stations[index].proxy(token, self.now)
            elif fate == 1:
                kept.append((index, token))
        self.network = kept[-20:]

    def restart(self, index: int) -> None:
        token = self.stations[index].record.client.election
        self.stations[index] = station = Station(self.data.draw(st.integers(0, 9)), index)
        station.record.lifetime.on_heard(self.now)
        if token is not None:
            station.resume(token, self.now)

    def proxies(self) -> int:
        return sum(station.machine.ours for station in self.stations)


@pytest.mark.rows("P-544", "P-548", "P-554")
@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 4))
def test_when_faults_end_one_proxy_remains(data: st.DataObject, size: int) -> None:
    """T23: never none for ever, never two that last; and none once the source is back."""
    world = World(data, size)
    for _ in range(data.draw(st.integers(0, 60))):
        step = data.draw(st.integers(0, 19))
        if step == 0:
            world.restart(data.draw(st.integers(0, size - 1)))
        elif step == 1:
            world.stations[data.draw(st.integers(0, size - 1))].source(world.now)
        world.tick()
    world.faulty = False
    for _ in range(200):
        world.tick()
    for _ in range(20):
        assert world.proxies() == 1
        world.tick()
    for station in world.stations:
        station.source(world.now)
    world.tick()
    assert world.proxies() == 0
