"""Stores that sources know by name: queried while a source uses them, and known while one is registered."""

import asyncio
import logging

import attrs
import pytest

from stablecast.cli import daemons
from stablecast.cli.daemons import DaemonJob
from stablecast.client import Context, resolution
from stablecast.client.named_stores import NamedStores, StoreHosts
from stablecast.config.profiles import profile
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.inputs import Located
from stablecast.core.protocol.settings import StoreSpec
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.programs import CONFIGURATION, DATA, RELAY_PORT, STORE_PORT, start_relay
from stablecast.lab.world.world import World
from stablecast.resolver.combined_resolver import Combined
from tests.support.network import until

AT = "127.0.0.1:14567"


class NamedSource:
    """A source of two named stores, and of one that has an address."""

    def __init__(self) -> None:
        stores = (StoreSpec(name="store-A"), StoreSpec(name="store-B"), StoreSpec(address="127.0.0.1:1"))
        self.config = attrs.evolve(profile("safe").source, stores=stores)
        self.located: list[Located] = []

    def receive(self, event: Located) -> None:
        self.located.append(event)

    def registered_names(self) -> list[str]:
        return ["store-A", ""]


class Recorded(Combined):
    """Resolution that records what it is asked for names."""

    def __init__(self) -> None:
        super().__init__(lambda *_: None)
        self.asked: list[tuple[str, str]] = []

    def ask_name(self, name: str) -> bool:
        self.asked.append(("ask", name))
        return True

    def forget_name(self, name: str) -> None:
        self.asked.append(("forget", name))

    def name_alive(self, name: str) -> None:
        self.asked.append(("alive", name))


@pytest.mark.rows("P-203")
async def test_a_context_without_resolution_warns(caplog: pytest.LogCaptureFixture) -> None:
    """The address of a store that was given with the context is used."""
    source = NamedSource()
    names = NamedStores(None, StoreHosts(lambda *_: None), {"store-A": AT}, SECOND)
    names.add(source)
    assert source.located == [Located("store-A", AT)]
    assert [record.args for record in caplog.records] == [("store-B",)]
    names.remove(source)
    names.close()


@pytest.mark.rows("T-201")
async def test_names_are_queried_while_a_source_uses_them() -> None:
    """Sources of one name share a query, and what was found earlier is not trusted."""
    found, known = Recorded(), {"store-B": AT}
    names = NamedStores(found, StoreHosts(lambda *_: None), known, SECOND)
    one, other = NamedSource(), NamedSource()
    names.add(one)
    names.add(other)
    known["store-A"] = AT
    assert found.asked == [("ask", "store-A")]
    names.remove(one)
    assert found.asked[1:] == []
    names.remove(other)
    names.remove(other)
    assert found.asked[1:] == [("forget", "store-A")]
    names.add(one)
    assert found.asked[2:] == [("ask", "store-A")]
    names.close()


@pytest.mark.rows("T-206")
async def test_the_names_of_registered_stores_are_alive() -> None:
    """Store-B is not registered."""
    found = Recorded()
    names = NamedStores(found, StoreHosts(lambda *_: None), {}, 40_000_000)
    names.add(NamedSource())
    await until(lambda: found.asked.count(("alive", "store-A")) == 2)
    assert ("alive", "store-B") not in found.asked
    names.close()


def store_of(world: World, host: str) -> SimulatedProcess:
    """Start the daemon of a store that is called `twice`."""
    where, disk = world.host(host).address, world.host(host).disk
    relay = f"{world.host('relay').address}:{RELAY_PORT}"
    disk.make_directories(str(DATA))
    options = {"disk-cache-directory": DATA, "disk-state-directory": DATA, "context-name": "twice"}
    text = "".join(f'<option type="store" name="{name}" value="{value}"/>' for name, value in options.items())
    text += f'<option type="lbm-context" name="resolver_unicast_daemon" value="{relay}"/>'
    disk.place_file(
        str(CONFIGURATION),
        f"""<?xml version="1.0"?>
<ume-store version="1.3"><daemon><log type="console"/></daemon><stores>
<store name="{host}" interface="{where}" port="{STORE_PORT}"><ume-attributes>{text}</ume-attributes>
<topics><topic pattern="." type="PCRE"/></topics></store></stores></ume-store>
""".encode(),
    )
    job = DaemonJob(CONFIGURATION, "safe", detach=False, new=True, trace=None, as_json=False)
    return world.call(lambda: daemons.run_daemon(job), host)


@pytest.mark.rows("P-205")
def test_a_store_announces_its_name_when_it_starts() -> None:
    """The source that wants it has stopped asking by then."""
    world = World(1)

    async def application() -> None:
        relay, host = world.host("relay").address, world.host("observer").address
        asked = resolution(options={"resolver_context_name_query_duration": 5_000})
        async with Context(resolver=[f"{relay}:{RELAY_PORT}"], resolution=asked, interface=host) as context:
            source = await context.source("orders", options={"ume_store_name": "twice"}, wait=False)
            await asyncio.sleep(60)
            store_of(world, "one")
            await source.registered(10)

    start_relay(world)
    world.run(application)


@pytest.mark.rows("P-205", "P-206", "T-206", "T-207")
def test_two_stores_of_one_name_do_not_take_turns(caplog: pytest.LogCaptureFixture) -> None:
    """Ten minutes of the shipped programs, each of which warns once."""
    world = World(1)
    caplog.set_level(logging.INFO, logger="stablecast")

    async def application() -> set[str]:
        relay, host = world.host("relay").address, world.host("observer").address
        async with Context(resolver=[f"{relay}:{RELAY_PORT}"], interface=host, session_id=1) as context:
            source = await context.source("orders", options={"ume_store_name": "twice"})
            await asyncio.sleep(5)
            places = set()
            for _ in range(60):
                await (await source.send(b"tick")).stable()
                places.add(context.store_names["twice"])
                await asyncio.sleep(10)
            return places

    start_relay(world)
    stores = [store_of(world, host) for host in ("one", "two")]
    places = world.run(application)
    assert len(places) == 1
    assert caplog.text.count("several stores are called 'twice'") == 1
    assert "is queried again" not in caplog.text
    for store in stores:
        assert sum("is called 'twice' as well" in line for line in store.output) == 1
