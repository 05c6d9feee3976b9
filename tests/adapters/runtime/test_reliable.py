"""LBT-RM and LBT-RU on real sockets, through a relay that drops."""

import asyncio
from unittest import mock

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND
from stablecast.runtime import datagrams, multicast
from stablecast.runtime.datagrams import DatagramSocket
from stablecast.runtime.reliable_receivers import ReliableReceivers
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.runtime.source_strings import Where
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.lbtrm import LbtrmSources
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.settings import LBTRM_RECEIVER, RateSettings, SourceSettings
from tests.adapters.runtime.lossy import LOOPBACK, MulticastRelay, UnicastRelay
from tests.support.network import until
from tests.transports.reliable.network import block

MS = MILLISECOND
GROUP = ("239.192.7.1", 14477)
BEHIND = ("239.192.7.2", 14477)
QUICK = SourceSettings(batch_bytes=1, ignore_ns=5 * MS, sm_min_ns=20 * MS, sm_max_ns=80 * MS, linger_ns=200 * MS)
PATIENT = attrs.evolve(
    LBTRM_RECEIVER, initial_backoff_ns=5 * MS, backoff_ns=20 * MS, suppress_ns=30 * MS, connect_ns=10 * MS
)
MESSAGES = 1_000


class Heard:
    """The received items of one topic."""

    def __init__(self, total: int = MESSAGES) -> None:
        self.total = total
        self.numbers = RangeSet()
        self.began = asyncio.Event()
        self.whole = asyncio.Event()
        self.ended = asyncio.Event()
        self.lost: list[fx.TopicLost] = []

    def __call__(self, effect: fx.ReceiverEffect) -> None:
        match effect:
            case fx.Began():
                self.began.set()
            case fx.Received(items):
                for run in items:
                    assert isinstance(run, Run)
                    assert not self.numbers.within(run.first, run.first + run.count), "a message came twice"
                    self.numbers.add(run.first, run.first + run.count)
                if self.numbers.total() == self.total:
                    self.whole.set()
            case fx.TopicLost():
                self.lost.append(effect)
            case fx.SessionEnded():
                self.ended.set()


async def send(sources: ReliableSources, session: int, total: int = MESSAGES, at_once: int = 10) -> None:
    """Some at a time, so that sockets and event loop keep up."""
    for first in range(0, total, at_once):
        await sources.room()
        sources.offer(session, block(7, first, at_once))
        await asyncio.sleep(0.001)


@pytest.mark.rows("P-301", "P-401", "P-953")
@pytest.mark.parametrize("permille", [0, 10, 100, 300])
async def test_unicast_loses_nothing_through_a_relay_that_drops(permille: int) -> None:
    """Two clients, data and NAKs dropped alike."""
    sources, receivers = ReliableSources(LbtruSources(), LOOPBACK), [ReliableReceivers(LOOPBACK) for _ in range(2)]
    session = sources.open(settings=QUICK)
    where = sources.where(session)
    relay = UnicastRelay(where.address, permille)
    host, _, port = relay.address.rpartition(":")
    there = attrs.evolve(where, host=host, port=int(port))
    heard = [Heard(), Heard()]
    try:
        joined = [those.join(there, one, PATIENT) for those, one in zip(receivers, heard, strict=True)]
        for one in heard:
            await one.began.wait()
        await send(sources, session)
        for one in heard:
            await one.whole.wait()
            assert not one.lost
        if permille:
            assert relay.dropped
            assert sum(one.statistics()["naks_sent"] for one in joined) > 0
        assert sources.statistics(session)["num_clients"] == 2
        sources.retire(session)
        if not permille:
            for one in heard:
                await one.ended.wait()
    finally:
        for those in receivers:
            those.close()
        sources.close()
        relay.close()


@pytest.mark.rows("P-301", "P-401", "P-953")
@pytest.mark.parametrize("permille", [0, 10, 100, 300])
async def test_multicast_loses_nothing_through_a_relay_that_drops(permille: int) -> None:
    """Two receivers at one socket's group, and one datagram serves both."""
    sources, receivers = ReliableSources(LbtrmSources(), LOOPBACK), [ReliableReceivers(LOOPBACK) for _ in range(2)]
    session = sources.open(f"{GROUP[0]}:{GROUP[1]}", QUICK)
    relay = MulticastRelay(GROUP, BEHIND, permille)
    there = attrs.evolve(sources.where(session), group=relay.group)
    heard = [Heard(MESSAGES), Heard(MESSAGES)]
    try:
        joined = [place.join(there, hears, PATIENT) for place, hears in zip(receivers, heard, strict=True)]
        permitted, relay.permille = relay.permille, 0  # where a session begins is what is heard first
        await send(sources, session, 10)
        for one in heard:
            await one.began.wait()
        relay.permille = permitted
        for first in range(10, MESSAGES, 10):
            await sources.room()
            sources.offer(session, block(7, first, 10))
            await asyncio.sleep(0.001)
        for one in heard:
            await one.whole.wait()
            assert not one.lost
        if permille:
            assert relay.dropped
            assert sum(one.statistics()["naks_sent"] for one in joined) > 0
    finally:
        for place in receivers:
            place.close()
        sources.close()
        relay.close()


@pytest.mark.parametrize("group", ["", f"{GROUP[0]}:{GROUP[1]}"])
async def test_artificial_loss_costs_no_message_and_the_counters_say_what_happened(group: str) -> None:
    """A receiver that drops 10 % of what arrives, at the rate that its source has."""
    machine = LbtrmSources() if group else LbtruSources()
    sources, receivers = ReliableSources(machine, LOOPBACK), ReliableReceivers(LOOPBACK)
    session = sources.open(group, QUICK)
    heard = Heard()
    try:
        joined = receivers.join(sources.where(session), heard, attrs.evolve(PATIENT, drop_permille=100))
        if not group:
            await heard.began.wait()
        heard.total = 0
        await send(sources, session)
        await until(lambda: not heard.numbers.missing(heard.numbers.first or 0, MESSAGES))
        found = joined.statistics()
        assert found["dgrams_dropped_test"] > 0
        assert found["lost"] > 0
        assert found["naks_sent"] >= found["nak_tx_max"] > 0
        assert found["unrecovered_tmo"] == found["unrecovered_txw"] == 0
    finally:
        receivers.close()
        sources.close()


async def test_the_rate_limit_holds_up_the_sender_and_nothing_is_lost() -> None:
    sources, receivers = ReliableSources(LbtruSources(), LOOPBACK), ReliableReceivers(LOOPBACK)
    session = sources.open(settings=attrs.evolve(QUICK, batch_bytes=1000))
    heard = Heard(400)
    try:
        receivers.join(sources.where(session), heard, PATIENT)
        await heard.began.wait()
        for number in range(400):
            await sources.room()
            sources.offer(session, block(7, number, 1, 1000))
        sources.flush(session)
        await heard.whole.wait()
    finally:
        receivers.close()
        sources.close()


async def test_sessions_of_one_group_share_a_socket_and_strange_datagrams_are_counted() -> None:
    """Two sources on one group: told apart by host, port for NAKs and session ID."""
    sources, receivers = ReliableSources(LbtrmSources(), LOOPBACK), ReliableReceivers(LOOPBACK)
    group = f"{GROUP[0]}:{GROUP[1]}"
    sessions = [sources.open(group, QUICK) for _ in range(3)]
    heard = [Heard(1), Heard(1)]
    try:
        joined = [receivers.join(sources.where(number), one) for number, one in zip(sessions[:2], heard, strict=True)]
        for other in joined:
            other.pause()
        for number in sessions:
            sources.offer(number, block(7, 0, 1))
        await asyncio.sleep(0.02)
        assert not any(one.began.is_set() for one in heard)
        joined[1].resume()
        await asyncio.sleep(0.02)
        assert not any(one.began.is_set() for one in heard), "the other one still wants nothing"
        joined[0].resume()
        for one in heard:
            await one.whole.wait()
        await until(lambda: receivers.strange)
        strangers = DatagramSocket(datagrams.bind(LOOPBACK, 0), lambda _: None)
        assert receivers.asking
        strangers.send(receivers.asking, [b"hello"])
        strangers.close()
        known = receivers.strange
        await until(lambda: receivers.strange > known)
        joined[0].close()
        assert 7 in sources.machine.get(sessions[1]).marks.topics
        sources.forget(sessions[1], 7)
        assert 7 not in sources.machine.get(sessions[1]).marks.topics
    finally:
        receivers.close()
        sources.close()


async def test_a_paused_listener_that_leaves_holds_up_no_other_one() -> None:
    sources, receivers = ReliableSources(LbtrmSources(), LOOPBACK), ReliableReceivers(LOOPBACK)
    session, heard = sources.open(f"{GROUP[0]}:{GROUP[1]}", QUICK), Heard(1)
    try:
        leaving = receivers.join(sources.where(session), Heard(1), PATIENT)
        receivers.join(sources.where(session), heard, PATIENT)
        leaving.pause()
        leaving.close()
        sources.offer(session, block(7, 0, 1))
        await heard.whole.wait()
    finally:
        receivers.close()
        sources.close()


async def test_listeners_of_one_session_share_it_until_the_last_one_leaves() -> None:
    """Both hear all of it; a session that is over is joined anew."""
    sources, receivers = ReliableSources(LbtruSources(), LOOPBACK), ReliableReceivers(LOOPBACK)
    session = sources.open(settings=QUICK)
    where = sources.where(session)
    heard = [Heard(2), Heard(1)]
    try:
        first = receivers.join(where, heard[0], PATIENT)
        second = receivers.join(where, heard[1], attrs.evolve(PATIENT, send_naks=False))
        assert second.machine is first.machine
        assert first.statistics()["joined"] == 2
        await heard[0].began.wait()
        sources.offer(session, block(7, 0, 1))
        await heard[1].whole.wait()
        second.close()
        sources.offer(session, block(7, 1, 1))
        await heard[0].whole.wait()
        assert sources.statistics(session)["num_clients"] == 1
        sources.retire(session)
        await heard[0].ended.wait()
        first.close()
        assert receivers.all_statistics() == {}
        assert receivers.join(where, heard[0], PATIENT).machine is not first.machine
    finally:
        receivers.close()
        sources.close()


async def test_only_the_source_counts_and_a_receiver_always_has_a_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with datagrams.bind(LOOPBACK, 0) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr("stablecast.runtime.reliable_receivers.PORTS", (port, port))
        sources, receivers = ReliableSources(LbtruSources(), LOOPBACK), ReliableReceivers(LOOPBACK)
        session = sources.open(settings=QUICK)
        heard = Heard(1)
        stranger = DatagramSocket(datagrams.bind(LOOPBACK, 0), lambda _: None)
        try:
            joined = receivers.join(sources.where(session), heard, PATIENT)
            await heard.began.wait()
            stranger.send(f"{LOOPBACK}:{joined.port}", [b"hello"])
            await until(lambda: receivers.strange)
            joined.close()
        finally:
            stranger.close()
            receivers.close()
            sources.close()


async def test_a_task_that_waits_for_room_continues_when_there_is_room() -> None:
    sources = ReliableSources(LbtrmSources(RateSettings(20 * MS, 80_000)), LOOPBACK)
    session = sources.open(f"{GROUP[0]}:{GROUP[1]}", QUICK)
    try:
        await sources.room()
        sources.offer(session, block(7, 0, 10, 100))
        assert sources.blocked
        await sources.room()
        assert sources.statistics(session)["msgs_sent"] == 10
    finally:
        sources.close()


async def test_sessions_use_the_ports_of_their_settings_also_at_another_address() -> None:
    """A firewall may let no others pass."""
    sources, receivers = ReliableSources(LbtruSources(), LOOPBACK), ReliableReceivers(LOOPBACK)
    sending, hearing = (30_110, 30_119), (30_120, 30_129)
    where = [sources.where(sources.open(settings=QUICK, ports=sending)) for _ in range(2)]
    joined = [receivers.join(one, lambda _: None, ports=hearing) for one in where]
    for _ in range(2):
        assert all(sending[0] <= one.port <= sending[1] for one in where)
        assert all(hearing[0] <= one.port <= hearing[1] for one in joined)
        receivers.move("127.0.0.2")
    assert {one._session.hearing._sock.getsockname()[0] for one in joined} == {"127.0.0.2"}
    receivers.close()
    sources.close()


async def test_receivers_of_groups_hear_all_of_them_and_ask_at_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who left all of them may join anew."""
    receivers = ReliableReceivers(LOOPBACK)
    assert receivers.asking == ""
    hearing = mock.Mock(side_effect=multicast.hearing)
    monkeypatch.setattr(multicast, "hearing", hearing)
    places = [Where(LOOPBACK, 9, 1, f"{group}:{port}") for group, port in (GROUP, BEHIND)]
    joined = [receivers.join(where, lambda _: None) for where in places]
    receivers.move("127.0.0.2")
    assert hearing.mock_calls == [mock.call(*group, at) for at in (LOOPBACK, "127.0.0.2") for group in (GROUP, BEHIND)]
    assert receivers.asking.startswith("127.0.0.2:")
    for one in joined:
        one.close()
    assert (receivers._sessions, receivers._groups) == ({}, {})
    receivers.close()
