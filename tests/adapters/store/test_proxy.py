"""A source that a store hosts: found, registered, announcing itself, silent otherwise."""

import asyncio
from pathlib import Path

import attrs
import pytest

from stablecast.client import Context, Receiver
from stablecast.config.option_kinds import Value
from stablecast.config.transport_options import Transport, TransportConfig
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.effects import Send, StartProxy, StopProxy
from stablecast.core.protocol.events import Event, Overtaken, QuorumLost, RegistrationComplete, RegistrationFlag
from stablecast.core.protocol.inputs import ProxyOver, ProxyQuorum, Start
from stablecast.core.protocol.messages import ElectionToken, Pace, Register, StoreEntry, Wishes
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source import SourceEndpoint
from stablecast.runtime.ports import PortError
from stablecast.store.proxy import Proxies, proxy_config
from stablecast.store.store import Store
from tests.support.abstract_states import abstract
from tests.support.network import LOCAL, Events, network, others, until

TOKEN = ElectionToken(77, 1)


def effect_for(*addresses: str, session_id: int = 9, reg_id: int = 5) -> StartProxy:
    stores = tuple(StoreEntry(index, 0, at, 100 + index, 1) for index, at in enumerate(addresses))
    return StartProxy(reg_id, "orders", session_id, TOKEN, tuple(reversed(stores)), (len(stores),))


@pytest.mark.rows("P-540")
def test_the_registration_of_a_proxy() -> None:
    """The RegIDs of the source, or its session id, in the order of its stores; and the token."""
    config = proxy_config(effect_for("a:1", "a:2", session_id=0))
    assert [(store.address, store.reg_id, store.group) for store in config.stores] == [("a:1", 100, 0), ("a:2", 101, 0)]
    assert (config.topic, config.session_id, config.election, config.groups.sizes) == ("orders", 0, TOKEN, (2,))
    assert (config.pace, config.flight_messages, config.wants_proxy) == (Pace.SOURCE, 1000, True)
    config = proxy_config(effect_for("a:1", session_id=9))
    assert (config.session_id, config.stores[0].reg_id) == (9, 0)


@pytest.mark.rows("P-540")
def test_a_proxy_calls_the_stores_as_its_source_does() -> None:
    """Though the store knows some of them only."""
    known = (StoreEntry(3, 1, "d:1", 103, 1), StoreEntry(1, 0, "b:1", 101, 1))
    config = attrs.evolve(proxy_config(attrs.evolve(effect_for(), stores=known, group_sizes=(3, 3))), incarnation=1)
    source = SourceEndpoint.create(config)
    source.receive(Start(), 0)
    sent = [effect.message for effect in source.take_effects() if isinstance(effect, Send)]
    assert [message.store_index for message in sent if isinstance(message, Register)] == [1, 3]


@pytest.mark.rows("P-569")
def test_a_proxy_asks_for_what_its_source_asked_for() -> None:
    """Other values would be refused."""
    wishes = Wishes(size_threshold=5, flight_messages=7, flight_bytes=70)
    config = proxy_config(attrs.evolve(effect_for("a:1"), pace=Pace.RECEIVERS, wishes=wishes))
    config = attrs.evolve(config, incarnation=1, reply_to="p:1", transport="p:2")
    [request] = [
        registration.request for registration in SourceEndpoint.create(config).enrollment.registrations.values()
    ]
    assert (request.pace, request.wishes) == (Pace.RECEIVERS, wishes)


@pytest.mark.rows("P-540", "P-541")
async def test_a_proxy_stands_in_for_a_source_that_is_gone(tmp_path: Path) -> None:
    """A receiver that comes finds it, registers, and gets what the store has."""
    async with network(tmp_path) as net:
        where = await net.store()
        context = await net.context(session_id=9)
        source = await context.source("orders", stores=[where], options={"ume_proxy_source": 1})
        await source.send_many([b"%d" % number for number in range(5)])
        await source.wait_stable_through(4)
        await context.close()
        store = net.stores["store"]
        store._proxies._context = lambda: Context(resolver=[net.relays[0].address], interface=LOCAL)
        before = others()
        store._perform(effect_for(where))
        store._perform(effect_for(where))
        assert len(store._proxies) == 1
        receiver = (await net.context(session_id=2)).receiver("orders", on_event=Events())
        assert [(await anext(receiver)).payload for _ in range(5)] == [b"%d" % number for number in range(5)]
        await _end(store, receiver)
        await until(lambda: others() <= before)


async def _end(store: Store, receiver: Receiver) -> None:
    store._perform(StopProxy(5))
    store._perform(StopProxy(5))
    assert len(store._proxies) == 0
    await until(lambda: not receiver._sessions)
    await receiver.close()


async def test_a_proxy_ends_with_its_store(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        where = await net.store()
        store = net.stores["store"]
        store._perform(effect_for(where))
        await asyncio.sleep(0)
        await net.stop()
        assert len(store._proxies) == 0


async def test_a_proxy_that_needs_a_quorum_of_stores_serves_while_it_has_one(tmp_path: Path) -> None:
    """C-40: and it ends when it has that quorum no more."""
    how = {"check_ns": 20 * MILLISECOND, "allow_proxy": True, "proxy_quorum": True, "proxy_interval_ns": SECOND // 2}
    async with network(tmp_path) as net:
        places = [await net.store(f"s{number}", changes={"seed": number, **how}) for number in range(3)]
        context = await net.context(session_id=9)
        options = {"ume_proxy_source": 1, "ume_activity_timeout": 300, "ume_registration_interval": 100}
        source = await context.source("orders", stores=places, options=options)
        await source.send(b"x")
        await source.wait_stable_through(0)
        stores = [net.stores[f"s{number}"] for number in range(3)]
        for store in stores:
            store._proxies._context = lambda: Context(resolver=[net.relays[0].address], interface=LOCAL)
            store._proxies._options = lambda _: {"ume_registration_interval": 100, "ume_store_activity_timeout": 300}
        await until(lambda: all(_knows_all(store) for store in stores))
        await context.close()
        await until(lambda: [state for store in stores for state in _states(store)].count("SERVING") == 1)
        (serving,) = [name for name, store in net.stores.items() if "SERVING" in _states(store)]
        for name in set(net.stores) - {serving}:
            await net.stop(name)
        await until(lambda: "SERVING" not in _states(net.stores[serving]))


@pytest.mark.parametrize(
    ("event", "kind", "held"),
    [
        (RegistrationComplete(0, RegistrationFlag.NONE), ProxyQuorum, (True,)),
        (QuorumLost(1, 2), ProxyQuorum, (False,)),
        (Overtaken(), ProxyOver, ()),
    ],
)
async def test_a_store_is_told_what_becomes_of_its_proxy(
    event: Event, kind: type[ProxyQuorum | ProxyOver], held: tuple[bool, ...]
) -> None:
    told: list[ProxyQuorum | ProxyOver] = []
    proxies = Proxies(Context, lambda *_: None, told.append)
    effect = effect_for("127.0.0.1:1")
    proxies._on_event(effect, event)
    proxies._running[effect.source_reg_id] = asyncio.create_task(asyncio.sleep(0))
    proxies._on_event(effect, event)
    assert told == [kind(effect.source_reg_id, effect.election, *held)]


def _knows_all(store: Store) -> bool:
    return all(len(record.client.stores) == 3 for record in store._machine.clients.sources())


def _states(store: Store) -> list[str]:
    return [state for _, (state, _, _) in abstract(store._machine.registry.elections)]


async def test_a_store_is_told_that_its_proxy_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its election begins anew then, and not when the lease of the proxy is over."""

    async def fail(*_: object) -> None:
        raise PortError("no port is left")

    monkeypatch.setattr(Context, "host", fail)
    told: list[ProxyQuorum | ProxyOver] = []
    proxies = Proxies(lambda: Context(interface=LOCAL), lambda *_: None, told.append)
    effect = effect_for(f"{LOCAL}:1")
    proxies.start(effect)
    await proxies._running[effect.source_reg_id]
    assert told == [ProxyOver(effect.source_reg_id, effect.election, failed=True)]
    assert len(proxies) == 0
    proxies.start(effect)
    await proxies.close()
    assert len(told) == 1, "one that was stopped did not fail"


async def test_a_proxy_that_cannot_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with network(tmp_path) as net:
        where = await net.store()
        store = net.stores["store"]

        def fail(*_: object) -> None:
            raise PortError("no port is left")

        monkeypatch.setattr("stablecast.client.context.ports.listen_in_range", fail)
        store._perform(effect_for(where))
        await until(lambda: store.oddities["proxy-failed"])
        assert store.reports[-1] == "no proxy stands in for source 5: no port is left"
        assert len(store._proxies) == 0


@pytest.mark.rows("P-845")
async def test_a_proxy_has_the_options_of_its_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lbm-source, for the topic that the source sends on, with its transport and the limits of that."""
    asked: list[tuple[str, int, Transport, int]] = []
    hosted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def host(_: Context, config: SourceConfig, on_event: object, transport: TransportConfig) -> None:
        asked.append((config.topic, config.flight_messages, transport.kind, transport.lbtru.rates.interval_ns))
        hosted.set_result(None)

    monkeypatch.setattr(Context, "host", host)
    options: dict[str, dict[str, Value]] = {
        "orders": {"ume_flight_size": 77, "transport": "lbtru", "transport_lbtru_rate_interval": 50}
    }
    proxies = Proxies(lambda: Context(interface=LOCAL), lambda *_: None, print, lambda topic: options.get(topic, {}))
    proxies.start(effect_for(f"{LOCAL}:1"))
    await hosted
    await proxies.close()
    assert asked == [("orders", 77, Transport.LBTRU, 50 * MILLISECOND)]
