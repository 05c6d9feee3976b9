"""Contexts: what they refuse, what they route, and that nothing is left of them."""

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from stablecast.client import Closed, Context, Receiver, RegistrationFailed
from stablecast.client.loop_ownership import OPEN
from stablecast.config.options import OptionError
from stablecast.config.stores import StoreListError
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import Keepalive, Role
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source.outbox import PROMPT_MESSAGES
from stablecast.evidence.trace import TraceError
from stablecast.runtime import ports
from stablecast.runtime.address import AddressError
from stablecast.runtime.ports import PortError
from stablecast.runtime.wakeup_latency import Courtesy
from stablecast.transports import codec
from stablecast.transports.resolution.records import SourceRecord
from tests.adapters.runtime.peers import data
from tests.support.network import LOCAL, Network, connected, others, sockets, until, unused_port
from tests.support.retransmissions import encode_recovered
from tests.support.traffic import send, source_of, take


@pytest.mark.parametrize("prompt", [True, False])
async def test_a_context_is_prompt_unless_it_is_told_not_to_be(
    net: Network, monkeypatch: pytest.MonkeyPatch, prompt: bool
) -> None:
    """Its sources give way, once it has receivers its thread asks for short slices, never for a source."""
    done: list[str] = []
    monkeypatch.setattr("stablecast.client.context.short_slices", lambda: done.append("asked"))
    monkeypatch.setattr(Courtesy, "give_way", lambda _: done.append("gave way"))
    await net.context()
    sending, taking = Context(resolver=[net.relays[0].address]), Context(resolver=[net.relays[0].address])
    sending.prompt = taking.prompt = prompt
    async with sending, taking:
        receiver = taking.receiver("orders")
        assert done == ["asked"] * prompt
        source = await sending.source("orders", stores=[await net.store()])
        source.try_send(b"0")
        source.try_send(b"1", {"kind": "not plain"})
        assert await take(receiver, 2) == [0, 1]
    assert done == ["asked", "gave way", "gave way"] * prompt


async def test_a_source_that_says_much_gives_way_to_nobody(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a turn lasts it knows of the one before: so of much the first time too."""
    given: list[int] = []
    monkeypatch.setattr(Courtesy, "give_way", lambda _: given.append(1))
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    few, much = PROMPT_MESSAGES, PROMPT_MESSAGES + 1
    for messages, times in ((few, few), (1, 1), (much, few), (much, 0), (1, 0), (1, 1)):
        for _ in range(messages):
            source.try_send(b"x")
        await source.wait_stable_through(source.next_number - 1)
        assert len(given) == times
        given.clear()


async def test_a_context_leaves_nothing(net: Network) -> None:
    """Not even with sources, receivers, sessions, joined streams and messages under way."""
    store = await net.store()
    await net.context()
    before, tasks = sockets(), others()
    async with Context(resolver=[net.relays[0].address], session_id=3) as context:
        source = await context.source("orders", stores=[store])
        receivers = [
            context.receiver("orders"),
            context.receiver("trades"),
            context.receiver("lost", source=f"{LOCAL}:{unused_port()}"),
        ]
        await send(source, 10)
        await take(receivers[0], 5)
        source.try_send(b"x")
    await until(lambda: others() == tasks)
    await until(lambda: sockets() <= before)
    assert not context._sources
    assert not context._receivers
    await context.close()


async def test_a_context_can_be_opened_again() -> None:
    context = Context()
    for _ in range(2):
        async with context:
            assert context.request_address.startswith(f"{LOCAL}:")
            assert context in OPEN
            with pytest.raises(MisuseError, match="the context is open already"):
                await context.__aenter__()
        assert context not in OPEN, "a fork has nothing to disown then"


async def test_a_context_that_cannot_open_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sockets()

    async def failing(*_: object, **__: object) -> None:
        raise PortError("no such interface")

    monkeypatch.setattr("stablecast.client.source_discovery.Resolver.start", failing)
    with pytest.raises(PortError):
        async with Context(resolver=[f"{LOCAL}:15380"]):
            pass
    assert sockets() <= before
    with pytest.raises(PortError, match=r"192\.0\.2\.1 is not an address of this machine"):
        async with Context(interface="192.0.2.1"):
            pass


async def test_a_context_that_is_not_open() -> None:
    context = Context()
    with pytest.raises(Closed, match="use it inside 'async with'"):
        await context.source("orders")
    with pytest.raises(Closed):
        await context.host(SourceConfig("orders", 7, "", ""))
    with pytest.raises(Closed):
        context.receiver("orders")
    with pytest.raises(Closed):
        context.reader("orders", stores=["127.0.0.1:9"])
    await context.close()


def test_addresses_are_checked_at_once() -> None:
    with pytest.raises(AddressError):
        Context(interface="localhost")
    with pytest.raises(AddressError):
        Context(resolver=["127.0.0.1"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topic": "x" * 500}, MisuseError),
        ({"topic": ""}, MisuseError),
        ({"topic": "orders", "stores": ["127.0.0.1:14567:x"]}, StoreListError),
        ({"topic": "orders", "stores": ["300.0.0.1:14567"]}, AddressError),
        ({"topic": "orders", "options": {"ume_flight_sise": 1}}, OptionError),
        ({"topic": "orders", "session_id": True}, MisuseError),
        ({"topic": "orders", "session_id": 1 << 64}, MisuseError),
    ],
)
async def test_a_source_that_cannot_be(arguments: dict[str, object], error: type[StablecastError]) -> None:
    before = sockets()
    async with Context() as context:
        opened = sockets()
        with pytest.raises(error):
            await context.source(**arguments)  # type: ignore[arg-type]
        assert sockets() <= opened
        assert not context._sources
    assert sockets() <= before


async def test_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with Context(trace=tmp_path / "file") as context:
        opened = sockets()
        with pytest.raises(TraceError):
            await context.source("orders")
        assert sockets() <= opened


async def test_a_receiver_that_cannot_be(net: Network) -> None:
    context = await net.context()
    with pytest.raises(MisuseError, match="topic name"):
        context.receiver("x" * 500)
    with pytest.raises(AddressError):
        context.receiver("orders", source="nowhere")
    with pytest.raises(OptionError, match="did you mean 'ume_use_ack_batching'"):
        context.receiver("orders", options={"ume_use_ack_batchin": 1})
    with pytest.raises(MisuseError, match="topic name"):
        context.receiver("")
    async with context.receiver("orders"):
        with pytest.raises(MisuseError, match=r"has a receiver of 'orders': use that one, or make another Context"):
            context.receiver("orders")
    context.receiver("orders")
    async with Context() as alone:
        with pytest.raises(MisuseError, match="no way to find a source"):
            alone.receiver("orders")
        await alone.receiver("orders", source=f"{LOCAL}:{unused_port()}").close()
        assert not alone._receivers


async def test_a_source_that_is_one_too_many_is_closed(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    context = await net.context()
    assert context._resolver is not None

    def refusing(*_: object) -> None:
        raise MisuseError("one too many")

    monkeypatch.setattr(context._resolver, "add_source", refusing)
    opened = sockets()
    with pytest.raises(MisuseError, match="one too many"):
        await context.source("orders")
    assert sockets() <= opened
    assert not context._sources


@pytest.mark.rows("P-243")
async def test_session_ids_are_inherited_and_overridden(net: Network) -> None:
    context = await net.context(session_id=3)
    inherited = await context.source("a")
    own = await context.source("b", session_id=4)
    none = await context.source("c", session_id=0)
    by_option = await context.source("d", options={"ume_session_id": "0x10"})
    assert [source.config.session_id for source in (inherited, own, none, by_option)] == [3, 4, 0, 16]
    assert context.receiver("a").config.session_id == 3
    assert context.receiver("b", session_id=5).config.session_id == 5


async def test_closing_while_a_source_registers(net: Network) -> None:
    context = await net.context()
    registering = asyncio.create_task(context.source("orders", stores=[f"{LOCAL}:{unused_port()}"], within=None))
    await until(lambda: context._sources)
    await context.close()
    with pytest.raises(Closed):
        await registering


async def test_a_cancelled_close_still_closes(net: Network) -> None:
    before = sockets()
    context, source = await source_of(net, "a")
    await send(source, 5)
    closing = asyncio.create_task(context.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await net.stop("a")
    for relay in net.relays:
        await relay.close()
    await until(lambda: sockets() <= before)


async def test_the_ports_of_a_context(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders")
    request, stream = (int(at.rpartition(":")[2]) for at in (context.request_address, source.config.transport))
    assert context.ports()["lbttcp"] == [request, stream]
    assert len(context.ports()["lbmr"]) == 1
    async with Context() as alone:
        assert alone.ports()["lbmr"] == []


async def test_sources_listen_in_the_documented_range() -> None:
    async with Context() as context:
        source = await context.source("orders")
        low, high = ports.SOURCE_PORTS
        assert low <= int(source.config.transport.rpartition(":")[2]) <= high


async def test_malformed_input_is_counted(net: Network) -> None:
    """Nothing of it ends the context."""
    _, source = await source_of(net, "a")
    context = await net.context()
    receiver = context.receiver("orders")
    raw = await connected(int(context.request_address.rpartition(":")[2]))
    loop = asyncio.get_running_loop()
    life = source.config.incarnation
    retransmission = encode_recovered(codec.Recovered(life + 1, life + 1, 5, b"x"))
    stranger = codec.encode(Keepalive(Role.STORE, 12345, 99, True, 0))
    await loop.sock_sendall(raw, data(1) + codec.greeting(5) + retransmission + stranger)
    await until(lambda: context.oddities["malformed-on-request-port"])
    assert context.oddities == {"data-on-request-port": 1, "malformed-on-request-port": 1, "foreign-Recovered": 1}
    await loop.sock_sendall(raw, b"\xff" * 40)
    assert not await loop.sock_recv(raw, 1)
    raw.close()
    await send(source, 3)
    assert await take(receiver, 3) == [0, 1, 2]


async def test_broken_connections_reach_everybody(net: Network) -> None:
    context, source = await source_of(net, "a")
    receiver = context.receiver("orders")
    await send(source, 1)
    await take(receiver, 1)
    heard: list[object] = []
    session = next(iter(receiver._sessions.values()))
    source.receive = heard.append  # type: ignore[assignment]
    session.receive = heard.append  # type: ignore[assignment]
    context.pool._on_reset("1.2.3.4:5")
    context.pool._on_gone("1.2.3.4:5")
    assert heard == [Reset("1.2.3.4:5")] * 2 + [Gone("1.2.3.4:5")] * 2


async def test_registration_may_take_as_long_as_it_likes(net: Network) -> None:
    context = await net.context()
    port = unused_port()
    source = await context.source("orders", stores=[f"{LOCAL}:{port}"], wait=False)
    with pytest.raises(RegistrationFailed):
        await source.registered(0)
    await net.store(listen=f"{LOCAL}:{port}")
    await source.registered()
    await (await source.send(b"x")).stable()


async def test_a_source_that_is_closed_is_advertised_no_more(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody looks for the names of its stores."""
    context = await net.context(session_id=1)
    one, other = [await context.source(topic, wait=False) for topic in ("orders", "trades")]
    resolver, names = mock.Mock(), mock.Mock()
    monkeypatch.setattr(context, "_resolver", mock.Mock(wraps=context._resolver, remove_source=resolver))
    monkeypatch.setattr(context, "_names", mock.Mock(wraps=context._names, remove=names))
    await one.close()
    assert resolver.mock_calls == [mock.call(*codec.split(one.life))]
    assert names.mock_calls == [mock.call(one)]
    assert list(context._sources.values()) == [other]


async def test_the_end_of_a_source_is_told_to_the_receiver_of_its_topic(net: Network) -> None:
    """Else it would stay joined until the connection ends."""
    context = await net.context()
    receivers = [context.receiver(topic) for topic in ("orders", "trades")]
    record = SourceRecord(f"{LOCAL}:9", 7, 3)
    with mock.patch.object(Receiver, "withdrawn", autospec=True) as withdrawn:
        for topic in ("trades", "others"):
            context._on_gone(topic, record)
    assert withdrawn.mock_calls == [mock.call(receivers[1], f"{LOCAL}:9", 7, 3, record.life)]
