"""A source that a store hosts: found, registered, announcing itself, silent otherwise."""

import asyncio
from pathlib import Path

import pytest

from stablecast.client import Receiver
from stablecast.core.effects import StartProxy, StopProxy
from stablecast.core.messages import ElectionToken, StoreEntry
from stablecast.daemon.proxy import proxy_config
from stablecast.daemon.store import Store
from stablecast.net.ports import PortError
from tests.support.network import LOCAL, Events, network, others, until

TOKEN = ElectionToken(77, 1)


def effect_for(*addresses: str, session_id: int = 9, reg_id: int = 5) -> StartProxy:
    stores = tuple(StoreEntry(index, 0, at, 100 + index, 1) for index, at in enumerate(addresses))
    return StartProxy(reg_id, "orders", session_id, TOKEN, tuple(reversed(stores)), (len(stores),))


def test_what_a_proxy_registers_with() -> None:
    """P-540: the RegIDs of the source, or its session id, in the order of its stores; and the token."""
    config = proxy_config(effect_for("a:1", "a:2", session_id=0))
    assert [(store.address, store.reg_id, store.group) for store in config.stores] == [("a:1", 100, 0), ("a:2", 101, 0)]
    assert (config.topic, config.session_id, config.election, config.groups.sizes) == ("orders", 0, TOKEN, (2,))
    config = proxy_config(effect_for("a:1", session_id=9))
    assert (config.session_id, config.stores[0].reg_id) == (9, 0)


async def test_a_proxy_stands_in_for_a_source_that_is_gone(tmp_path: Path) -> None:
    """P-540, P-541: a receiver that comes finds it, registers, and gets what the store has."""
    async with network(tmp_path) as net:
        where = await net.store()
        context = await net.context(session_id=9)
        source = await context.source("orders", stores=[where], options={"ume_proxy_source": 1})
        await source.send_many([b"%d" % number for number in range(5)])
        await source.wait_stable_through(4)
        await context.close()
        store = net.stores["store"]
        store._proxies._resolver = [net.relays[0].address]
        store._proxies._interface = LOCAL
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
