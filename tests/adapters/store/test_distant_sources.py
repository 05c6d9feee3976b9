"""Sources of other domains register at a store, which joins them where routers repeat them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import attrs
import pytest

from stablecast.client import Source
from stablecast.core.protocol.settings import StoreConfig
from stablecast.resolver import RelayDaemon
from stablecast.store.distant_sources import DistantSources
from stablecast.store.store import Store, StoreSettings
from stablecast.transports.resolution.records import SourceRecord, named
from tests.adapters.client.test_domains import Forwarder
from tests.support.network import LOCAL, Network, network, until
from tests.support.proxy import INDEX, Proxy, proxy, receiving, relay
from tests.support.traffic import send, take


@attrs.define
class Domains:
    """A source in domain 1, and in domain 2 a relay and a store; unicast passes a router."""

    net: Network
    there: RelayDaemon
    router: Forwarder
    directory: Path
    said: list[str] = attrs.field(factory=list)
    store: Store = attrs.field(init=False)

    async def begin(self, listen: str = f"{LOCAL}:0") -> None:
        settings = StoreSettings(
            listen,
            self.directory,
            StoreConfig("", seed=1),
            new=listen.endswith(":0"),
            resolver=(self.there.address,),
            context_name="far",
            log=lambda *line: self.said.append(line[-1]),
        )
        self.store = Store(settings)
        await self.store.start()
        self.net.stores["far"] = self.store
        self.router.connect(self.store._pool.routing, 2)

    async def source(self) -> Source:
        context = await self.net.context(session_id=7)
        self.router.connect(context.pool.routing, 1)
        return await context.source("orders", stores=[f"2:{self.store.address}"])

    def joined(self, source: Source) -> str:
        joiner = self.store._arrivals.joiners.get(source.config.incarnation)
        return getattr(joiner, "transport", "")


@pytest.fixture
async def domains(tmp_path: Path) -> AsyncIterator[Domains]:
    router, directory = Forwarder(), tmp_path / "far"
    directory.mkdir()
    async with network(tmp_path) as net:
        await router.open(net.stack)
        made = Domains(net, await relay(net), router, directory)
        await made.begin()
        yield made


async def repeated(domains: Domains, session: int = 5, cost: int = 1) -> Proxy:
    return await proxy(domains.net, domains.there, session=session, cost=cost)


async def test_a_store_joins_a_source_of_another_domain_where_it_is_repeated(domains: Domains) -> None:
    """Its acknowledgements, and what it sends again, name the life; so do the messages on its disk."""
    source = await domains.source()
    assert domains.joined(source) == ""
    one = await repeated(domains)
    await send(source, 5)
    assert domains.joined(source) == one.place
    behind = await receiving(domains.net, domains.there, session_id=1)
    domains.router.connect(behind.pool.routing, 2)
    assert await take(behind.receiver("orders"), 5) == list(range(5))
    (view,) = domains.store._machine.status.repositories.values()
    assert view.held.total() == 5
    assert source.config.incarnation != one.session << 32 | INDEX
    assert domains.store.oddities["foreign-source-on-stream"] == 0


@pytest.mark.parametrize("end", [Proxy.close, Proxy.fail])
async def test_a_store_goes_on_where_another_router_repeats_the_source(
    domains: Domains, end: Callable[[Proxy], Awaitable[None]]
) -> None:
    """Also if the place is still advertised."""
    source = await domains.source()
    dear, cheap = await repeated(domains, 5, cost=9), await repeated(domains, 6, cost=2)
    await until(lambda: domains.joined(source) == cheap.place)
    await send(source, 3)
    await end(cheap)
    await until(lambda: domains.joined(source) == dear.place)
    await send(source, 3)
    (view,) = domains.store._machine.status.repositories.values()
    assert view.held.total() == 6


async def test_the_log_names_a_source_that_is_repeated_nowhere(domains: Domains) -> None:
    places = domains.store._arrivals.distant.resolver
    assert places is not None
    places._waiting.patience = 1
    await domains.source()
    await until(lambda: any("source of 'orders' in another domain is repeated nowhere" in one for one in domains.said))


async def test_a_restarted_store_finds_the_place_again(domains: Domains) -> None:
    source = await domains.source()
    one = await repeated(domains)
    await send(source, 3)
    place = await domains.net.stop("far")
    await domains.begin(place)
    await send(source, 3)
    assert domains.joined(source) == one.place


@pytest.mark.rows("R-041")
def test_a_topic_is_asked_for_while_a_life_of_it_is_registered() -> None:
    calls: list[tuple[object, ...]] = []
    joined: list[tuple[int, str]] = []

    class Resolver:
        def __getattr__(self, name: str) -> object:
            return lambda *told, **more: calls.append((name, *told, *more.values()))

    def place(life: int, number: int) -> SourceRecord:
        origin = named(SourceRecord("10.0.0.1:1", life >> 32, life & 0xFFFF_FFFF, instance=b"instance")).origin
        return SourceRecord(f"10.0.1.{number}:1", 9, number, origin=origin)

    distant = DistantSources(lambda life, record: joined.append((life, record.address)))
    distant.want(1, "orders")
    distant.attach(Resolver())  # type: ignore[arg-type]
    distant.want(1, "orders")
    distant.want(2, "orders")
    assert calls == [("add_receiver", "orders"), ("add_receiver", "orders")]
    calls.clear()
    distant.found("orders", place(1, 1))
    distant.found("orders", place(3, 3))
    distant.found("trades", place(2, 2))
    assert (joined, calls) == ([(1, "10.0.1.1:1")], [])
    distant.found("orders", place(2, 2))
    assert (joined[1:], calls) == ([(2, "10.0.1.2:1")], [("resolved", "orders")])
    calls.clear()
    distant.lost(1)
    distant.lost(1)
    distant.lost(2)
    assert calls == [("lost", "orders", "10.0.1.1:1", True), ("lost", "orders", "10.0.1.2:1", False)]
    calls.clear()
    distant.leave(1)
    distant.leave(2)
    distant.leave(2)
    assert calls == [("remove_receiver", "orders")]
