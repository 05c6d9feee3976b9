"""Persistence over LBT-RM and LBT-RU: stores join what the source sends on, lose some of it, and lose nothing."""

import pytest

from stablecast.client import Receiver, Source
from stablecast.config.option_kinds import Value
from stablecast.config.transport_options import split
from stablecast.core.protocol.events import RegistrationComplete
from stablecast.runtime.ports import PortError
from tests.adapters.client.test_transport_sessions import HASTY, KINDS, OPTIONS
from tests.support.network import Events, Network, drop, until

BATCH = 4


async def sent(source: Source, begin: int, stop: int) -> list[bytes]:
    """Numbers, some at a time so that there are many datagrams; all stable."""
    payloads = [str(number).encode() for number in range(begin, stop)]
    last = 0
    for start in range(0, len(payloads), BATCH):
        last = await source.send_many(payloads[start : start + BATCH]) or 0
        source.flush()
    await source.wait_stable_through(last)
    return payloads


async def taken(receiver: Receiver, count: int) -> list[bytes]:
    """The next messages, each consumed."""
    found: list[bytes] = []
    while len(found) < count:
        message = await anext(receiver)
        message.consumed()
        found.append(message.payload)
    return found


def lossy(kind: str) -> dict[str, Value]:
    return {**HASTY, f"transport_{kind}_loss_rate": 10}


@pytest.mark.rows("P-301", "P-401")
@pytest.mark.parametrize("kind", KINDS)
async def test_stores_and_receivers_that_lose_a_tenth_lose_nothing_and_each_may_come_again(
    net: Network, kind: str
) -> None:
    """One store, two receivers; receiver, store and source are restarted in turn."""
    transports, _ = split(lossy(kind))
    store = await net.store(transports=transports)
    sending = await net.context()
    source = await sending.source("orders", stores=[store], session_id=7, options=OPTIONS[kind])

    async def listening(session_id: int) -> Receiver:
        events = Events()
        context = await net.context()
        receiver = context.receiver("orders", session_id=session_id, on_event=events, options=lossy(kind))
        await events.first(RegistrationComplete)
        return receiver

    receivers = [await listening(8), await listening(9)]
    expected = await sent(source, 0, 400)
    for receiver in receivers:
        assert await taken(receiver, 400) == expected
    (counters,) = net.stores["store"]._arrivals.statistics().values()
    assert counters["dgrams_dropped_test"] > 0
    traffic = net.stores["store"].traffic_of(source.config.incarnation)
    assert traffic.naks == counters["naks_sent"] > 0
    assert traffic.duplicates == counters["duplicate_data"]
    assert counters["unrecovered_tmo"] == counters["unrecovered_txw"] == 0

    await receivers[0]._context.close()  # type: ignore[attr-defined]  # a whole context here
    expected = await sent(source, 400, 600)
    receivers[0] = await listening(8)
    for receiver in receivers:
        assert await taken(receiver, 200) == expected

    address = await net.stop()
    await net.store(listen=address, transports=transports)
    expected = await sent(source, 600, 800)
    for receiver in receivers:
        assert await taken(receiver, 200) == expected
    await drop(sending)

    source = await (await net.context()).source("orders", stores=[store], session_id=7, options=OPTIONS[kind])
    assert source.next_number == 800
    expected = await sent(source, 800, 1000)
    for receiver in receivers:
        assert await taken(receiver, 200) == expected


@pytest.mark.rows("P-953")
@pytest.mark.parametrize("kind", KINDS)
async def test_topics_share_a_session_and_each_store_and_receiver_hears_its_own(net: Network, kind: str) -> None:
    """Sources that name the same place are on one session; a context that receives both joins it once."""
    store = await net.store()
    sending, hearing = await net.context(), await net.context()
    place: dict[str, Value] = {"transport_lbtru_maximum_ports": 1, **OPTIONS[kind]}
    sources = [await sending.source(topic, stores=[store], options=place) for topic in ("orders", "trades")]
    assert sources[0].place == sources[1].place
    assert len(sending.transports.statistics()) == 1
    receivers = [hearing.receiver(source.topic, options=HASTY) for source in sources]
    await until(lambda: all(receiver._sessions for receiver in receivers))
    ((_, joined),) = hearing.transports.statistics().items()
    assert joined["joined"] == 2
    told = [await sent(source, place * 1000, place * 1000 + 200) for place, source in enumerate(sources)]
    for receiver, expected in zip(receivers, told, strict=True):
        assert await taken(receiver, 200) == expected
    traffic = net.stores["store"]._arrivals.traffic
    assert [kept.received for kept in traffic.values()] == [200, 200]
    await sources[0].close()
    again = await sent(sources[1], 1200, 1300)
    assert await taken(receivers[1], 100) == again
    another = await sending.source("orders", stores=[store], options=place)
    assert another.place == sources[1].place, "the session goes on with its other source"
    later = await sent(another, 0, 100)
    assert await taken(receivers[0], 100) == later


async def test_later_sources_of_a_session_do_not_change_its_options(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """Documented: the first one sets them; the others are told."""
    context = await net.context()
    place: dict[str, Value] = {"transport": "lbtru", "transport_lbtru_maximum_ports": 1}
    one = await context.source("orders", options={**place, "transport_lbtru_ignore_interval": 7})
    two = await context.source("trades", options=place)
    assert one.place == two.place
    assert "source 'trades' shares the session LBT-RU:" in caplog.text


async def test_a_source_may_name_its_port_and_one_that_is_taken_is_refused(net: Network) -> None:
    context, other = await net.context(), await net.context()
    free = await context.source("orders", options=OPTIONS["lbtru"])
    port = int(free.place.split(":")[2])
    assert context.ports()["lbtru"] == [port]
    await context.source("trades", options=OPTIONS["lbtrm"])
    assert 14400 in context.ports()["lbtrm"]
    with pytest.raises(PortError, match="in use: stop the program that holds it"):
        await other.source("orders", options={"transport": "lbtru", "transport_lbtru_port": port})
