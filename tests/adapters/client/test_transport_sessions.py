"""Sources over LBT-RM and LBT-RU, through contexts."""

import asyncio

import pytest

from stablecast.client import Context, Receiver, Source, transport_sessions
from stablecast.client.transport_sessions import Transports
from stablecast.config.option_kinds import OptionError, Value
from stablecast.core.protocol.events import EndOfSource, RegistrationComplete, UnrecoverableLoss, Wakeup
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.runtime import datagrams
from stablecast.runtime.address import AddressError
from stablecast.runtime.datagrams import READ_DATAGRAMS
from stablecast.runtime.ports import PortError
from stablecast.transports import codec
from tests.support.network import LOCAL, Events, Network, until, unused_port

GROUP = "239.192.7.5"
OPTIONS: dict[str, dict[str, Value]] = {
    "lbtrm": {"transport": "lbtrm", "transport_lbtrm_multicast_address": GROUP, "transport_lbtrm_ignore_interval": 5},
    "lbtru": {"transport": "lbtru", "transport_lbtru_ignore_interval": 5},
}
HASTY: dict[str, Value] = {
    "transport_lbtrm_nak_initial_backoff_interval": 5,
    "transport_lbtrm_nak_backoff_interval": 20,
    "transport_lbtrm_nak_suppress_interval": 30,
    "transport_lbtru_nak_backoff_interval": 20,
    "transport_lbtru_nak_suppress_interval": 30,
    "transport_lbtru_connect_interval": 10,
}
KINDS = tuple(OPTIONS)


async def first(receiver: Receiver, count: int) -> list[bytes]:
    return [(await anext(receiver)).payload for _ in range(count)]


async def ready(source: Source, receiver: Receiver) -> None:
    """A streaming receiver hears what is sent once it knows its source."""
    await until(lambda: receiver._sessions)
    assert source.credit


@pytest.mark.rows("P-301", "P-953")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_streaming_source_is_heard_by_receivers_that_name_it(net: Network, kind: str) -> None:
    """In order, by two contexts."""
    sending = await net.context()
    source = await sending.source("orders", options=OPTIONS[kind])
    assert source.place.startswith("LBTRM:" if kind == "lbtrm" else "LBT-RU:")
    receivers = [(await net.context()).receiver("orders", source=source.place, options=HASTY) for _ in range(2)]
    for receiver in receivers:
        await ready(source, receiver)
    sent = [str(number).encode() for number in range(500)]
    await source.send_many(sent)
    for receiver in receivers:
        assert await first(receiver, 500) == sent
    await source.close()


@pytest.mark.rows("P-301")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_persistent_source_has_its_stores_over_tcp_and_its_receivers_on_the_transport(
    net: Network, kind: str
) -> None:
    """Receivers register, acknowledge and recover as over TCP."""
    stores = [await net.store(name) for name in ("a", "b", "c")]
    sending, hearing = await net.context(), await net.context()
    source = await sending.source("orders", stores=stores, session_id=7, options=OPTIONS[kind])
    early = [str(number).encode() for number in range(20)]
    await source.wait_stable_through(await source.send_many(early) or 0)
    events = Events()
    receiver = hearing.receiver("orders", source=source.place, session_id=8, on_event=events, options=HASTY)
    await events.first(RegistrationComplete)
    late = [str(number).encode() for number in range(20, 120)]
    await source.wait_stable_through(await source.send_many(late) or 0)
    assert await first(receiver, 120) == early + late
    await source.close()


@pytest.mark.rows("P-301", "T-405")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("over", ["relay", "service"])
async def test_a_source_is_found_and_found_again_in_its_next_life(net: Network, kind: str, over: str) -> None:
    """Over a relay, or over services alone; nobody tells the receiver where its source is.

    LBT-RM says no farewell: the next life is joined beside the one that fell silent.
    """
    daemon = await SrsDaemon.start(SrsConfig(interface=LOCAL, port=0), lambda *_: None)
    net.stack.push_async_callback(daemon.close)

    async def context(session_id: int) -> Context:
        if over == "relay":
            return await net.context(session_id=session_id)
        return await net.stack.enter_async_context(Context(resolver_service=[daemon.address], session_id=session_id))

    store = await net.store()
    receiver = (await context(2)).receiver("orders", options=HASTY)
    for life in range(2):
        sending = await context(1)
        source = await sending.source("orders", stores=[store], options=OPTIONS[kind])
        sent = [f"{life}/{number}".encode() for number in range(20)]
        await source.wait_stable_through(await source.send_many(sent) or 0)
        for payload in sent:
            message = await anext(receiver)
            message.consumed()
            assert message.payload == payload
        assert source.place in receiver._joiners
        silent = [session._stopped for session in receiver._sessions.values() if session.transport != source.place]
        assert all(silent), "an earlier life delivers nothing more"
        await sending.close()


async def test_a_source_that_is_found_and_cannot_be_joined_is_passed_over(
    net: Network, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing breaks: another source of the topic may be found."""
    sending, hearing = await net.context(), await net.context()

    def deaf(*_: object) -> None:
        raise PortError("this interface cannot hear groups")

    monkeypatch.setattr("stablecast.runtime.multicast.hearing", deaf)
    receiver = hearing.receiver("orders", options=HASTY)
    away = await sending.source("orders", options=OPTIONS["lbtrm"])
    await until(lambda: hearing.transports.unusable)
    assert f"is ignored, {away.place}: this interface" in caplog.text
    source = await sending.source("orders", options=OPTIONS["lbtru"])
    await ready(source, receiver)
    await source.send(b"heard")
    source.flush()
    assert await first(receiver, 1) == [b"heard"]
    for one in (away, source):
        await one.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_rate_limit_holds_up_who_sends_and_nothing_is_lost(net: Network, kind: str) -> None:
    sending, hearing = await net.context(), await net.context()
    limit: dict[str, Value] = {f"transport_{kind}_data_rate_limit": 4_000_000}
    events = Events()
    source = await sending.source("orders", on_event=events, options={**OPTIONS[kind], **limit})
    receiver = hearing.receiver("orders", source=source.place, options=HASTY)
    await ready(source, receiver)
    sent = [number.to_bytes(4, "big") * 250 for number in range(300)]
    for payload in sent[:100]:
        assert source.try_send(payload) is not None or source.credit == 0
        if not source.credit:
            break
    assert source.credit == 0
    assert source.try_send(b"more") is None
    begun = source.next_number
    assert await events.first(Wakeup)
    await source.send_many(sent[begun:])
    assert await first(receiver, 300) == sent
    await source.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_artificial_loss_costs_no_message_and_the_counters_tell(net: Network, kind: str) -> None:
    """A receiver that drops 10 % of what arrives, at 1,000 messages a second."""
    sending, hearing = await net.context(), await net.context()
    source = await sending.source("orders", options=OPTIONS[kind])
    lossy: dict[str, Value] = {**HASTY, f"transport_{kind}_loss_rate": 10}
    receiver = hearing.receiver("orders", source=source.place, options=lossy)
    await ready(source, receiver)
    sent = [str(number).encode() for number in range(600)]
    for start in range(0, 600, 10):
        await source.send_many(sent[start : start + 10])
        source.flush()
        await asyncio.sleep(0.01)
    assert await first(receiver, 600) == sent
    ((name, found),) = hearing.transports.statistics().items()
    assert name == f"receiver {source.place}"
    assert found["dgrams_dropped_test"] > 0
    assert found["unrecovered_tmo"] == found["unrecovered_txw"] == 0
    ((name, told),) = sending.transports.statistics().items()
    assert name == f"source {source.place}"
    assert told["rxs_sent"] > 0
    await source.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_receiver_that_does_not_read_stays_small_and_misses_nothing_when_it_does(
    net: Network, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that it does not read waits in the kernel, or is requested again."""
    monkeypatch.setattr("stablecast.client.inbox.MAX_QUEUED_BYTES", 20_000)
    sending, hearing = await net.context(), await net.context()
    source = await sending.source("orders", options=OPTIONS[kind])
    receiver = hearing.receiver("orders", source=source.place, options=HASTY)
    await ready(source, receiver)
    sent = [number.to_bytes(4, "big") * 250 for number in range(400)]
    await source.send_many(sent)
    await until(lambda: receiver._paused)
    await asyncio.sleep(0.05)
    assert receiver.inbox._bytes <= 20_000 + READ_DATAGRAMS * 10_000, "one read may be on its way"
    assert len(receiver.inbox) < 400
    assert await first(receiver, 400) == sent
    await source.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_losses_of_the_transport_are_reported_in_order(net: Network, kind: str) -> None:
    """A streaming receiver that does not ask: what it misses is lost, and the rest delivered."""
    sending, hearing = await net.context(), await net.context()
    source = await sending.source("orders", options=OPTIONS[kind])
    events = Events()
    deaf: dict[str, Value] = {
        f"transport_{kind}_send_naks": 0,
        f"transport_{kind}_nak_generation_interval": 50,
        f"transport_{kind}_loss_rate": 20,
    }
    receiver = hearing.receiver("orders", source=source.place, on_event=events, options={**HASTY, **deaf})
    await ready(source, receiver)
    begun = source.next_number
    for number in range(200):
        await source.send(str(number).encode())
        source.flush()
        await asyncio.sleep(0)
    lost = await events.first(UnrecoverableLoss, 3)
    assert begun <= lost.first <= lost.last < 200
    found = await first(receiver, 20)
    assert found == sorted(found, key=int)
    await source.close()


async def test_a_source_that_ends_resets_those_who_joined_and_a_new_one_is_looked_for(net: Network) -> None:
    """The end of an LBT-RU session; the receiver asks on at the place that it was given."""
    sending, hearing = await net.context(), await net.context()
    source = await sending.source("orders", options=OPTIONS["lbtru"])
    receiver = hearing.receiver("orders", source=source.place, options=HASTY)
    await ready(source, receiver)
    await sending.close()
    await until(lambda: not receiver._sessions)
    await until(lambda: receiver._joiners)


@pytest.mark.rows("T-015")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("over", ["relay", "service"])
async def test_a_source_that_ends_on_a_session_of_others_is_left(net: Network, kind: str, over: str) -> None:
    """The session lives on with another topic's source; the receiver gets all messages before the event."""
    daemon = await SrsDaemon.start(SrsConfig(interface=LOCAL, port=0), lambda *_: None)
    net.stack.push_async_callback(daemon.close)

    async def context() -> Context:
        if over == "relay":
            return await net.context()
        return await net.stack.enter_async_context(Context(resolver_service=[daemon.address]))

    sending, hearing = await context(), await context()
    shared = OPTIONS[kind] | {f"transport_{kind}_{'destination_' if kind == 'lbtrm' else ''}port": unused_port()}
    other, source = [await sending.source(topic, options=shared) for topic in ("trades", "orders")]
    assert other.place == source.place
    events, others = Events(), Events()
    receiver = hearing.receiver("orders", on_event=events, options=HASTY)
    beside = hearing.receiver("trades", on_event=others, options=HASTY)
    await ready(source, receiver)
    await ready(other, beside)
    await source.send_many([b"1", b"2", b"3"])
    await source.close()
    assert await events.first(EndOfSource) == EndOfSource("orders", source.place)
    assert await first(receiver, 3) == [b"1", b"2", b"3"]
    assert not receiver._sessions
    assert not receiver._joiners
    assert [wait.topic for wait in hearing.unresolved()] == ["orders"]
    await other.send(b"4")
    assert await first(beside, 1) == [b"4"]
    assert not others.of(EndOfSource)
    again = await sending.source("orders", options=shared)
    await ready(again, receiver)
    await again.send(b"5")
    assert await first(receiver, 1) == [b"5"]


async def test_a_source_that_announces_itself_on_is_not_left(net: Network) -> None:
    """A service that lost sight of a living source reports its end."""
    sending, hearing = await net.context(), await net.context()
    source = await sending.source("orders", options=OPTIONS["lbtrm"])
    events = Events()
    receiver = hearing.receiver("orders", on_event=events, options=HASTY)
    await ready(source, receiver)
    [session] = receiver._sessions.values()
    session_id, index = codec.split(session.incarnation)
    receiver.withdrawn(source.place, session_id, index)
    [farewell] = receiver.subscription.farewells.values()
    await until(lambda: receiver.subscription.farewells.get(session.incarnation) != farewell)
    assert session.incarnation in receiver.subscription.farewells
    await source.send(b"1")
    assert await first(receiver, 1) == [b"1"]
    receiver.withdrawn(source.place, session_id, index)
    assert receiver.subscription.next_timeout() is not None
    await receiver.close()
    assert receiver.subscription.next_timeout() is None
    assert not events.of(EndOfSource)


async def test_two_sources_of_one_topic_share_a_session_and_one_of_them_ends(net: Network) -> None:
    sending, hearing = await net.context(), await net.context()
    sources = [await sending.source("orders", options=OPTIONS["lbtrm"]) for _ in range(2)]
    events = Events()
    receiver = hearing.receiver("orders", on_event=events, options=HASTY)
    await until(lambda: len(receiver._sessions) == 2)
    await sources[0].close()
    await events.first(EndOfSource)
    assert len(receiver._sessions) == 1
    await sources[1].send(b"1")
    assert await first(receiver, 1) == [b"1"]


async def test_a_group_that_cannot_be_joined_fails_who_iterates(net: Network) -> None:
    receiver = (await net.context()).receiver("orders", source="LBTRM:127.0.0.1:14390:1:10.0.0.1:14400")
    with pytest.raises(PortError, match="give a group"):
        await anext(receiver)


async def test_without_a_port_for_naks_there_is_no_source(net: Network) -> None:
    """And no socket is left."""
    context = await net.context()
    with datagrams.bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        taken_only = {f"transport_lbtrm_source_port_{end}": port for end in ("low", "high")}
        with pytest.raises(PortError, match="in use"):
            await context.source("orders", options={"transport": "lbtrm", **taken_only})


async def test_a_place_that_is_none_is_refused(net: Network) -> None:
    with pytest.raises(AddressError, match="source string"):
        (await net.context()).receiver("orders", source="LBTRM:127.0.0.1:14390")


async def test_sources_take_the_groups_of_the_pool_in_turn(net: Network) -> None:
    context = await net.context()
    sources = [await context.source(topic, options={"transport": "lbtrm"}) for topic in "ab"]
    assert [source.place.split(":")[4] for source in sources] == ["224.10.10.10", "224.10.10.11"]
    for source in sources:
        await source.close()


async def test_an_option_of_a_transport_is_checked_like_any_other(net: Network) -> None:
    context: Context = await net.context()
    with pytest.raises(OptionError, match="transport must be one of"):
        await context.source("orders", options={"transport": "pigeon"})


@pytest.mark.rows("P-011")
@pytest.mark.parametrize("behavior", ["normal", "source_paced"])
async def test_a_slow_receiver_over_tcp_holds_the_source_or_is_dropped_and_loses_nothing(
    net: Network, behavior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue for it is bounded either way; who is dropped joins again and recovers from the store."""
    monkeypatch.setattr("stablecast.client.inbox.MAX_QUEUED_BYTES", 20_000)
    sending, hearing = await net.context(), await net.context()
    slow: dict[str, Value] = {
        "transport_tcp_multiple_receiver_behavior": behavior,
        "transport_session_maximum_buffer": 65_536,
        "ume_flight_size": 10_000,
    }
    source = await sending.source("orders", stores=[await net.store()], options=slow)
    receiver = hearing.receiver("orders")
    await ready(source, receiver)
    payload = bytes(10_000)
    counters = sending.transports.statistics()[f"source TCP:{source.place}"]
    sent = 0
    while not counters["clients_dropped"] and source.try_send(payload) is not None:
        sent += 1
        source.flush()
        await asyncio.sleep(0)
        counters = sending.transports.statistics()[f"source TCP:{source.place}"]
        assert counters["bytes_buffered"] < 4 * 65_536
    assert bool(counters["clients_dropped"]) == (behavior == "source_paced")
    assert len(await first(receiver, sent)) == sent
    ((name, heard),) = hearing.transports.statistics().items()
    assert name == f"receiver TCP:{source.place}"
    assert heard["lbmc_msgs_rcved"] > 0 < heard["bytes_rcved"]
    if behavior == "normal":
        await source.send(payload)
        assert await first(receiver, 1) == [payload]
    await source.close()


def test_a_source_that_is_passed_over_is_logged_ever_less(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transport_sessions, "MAX_REFUSED", 2)
    transports = Transports(LOCAL)
    for _ in range(7):
        transports.pass_over("192.0.2.1:1", PortError("no port"))
    assert (len(caplog.records), transports.unusable) == (3, 7)
    for place in ("192.0.2.2:1", "192.0.2.3:1"):
        transports.pass_over(place, PortError("no port"))
    assert transports._refused == {}
