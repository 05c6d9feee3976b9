"""Endpoints in two domains: everything between them and their stores passes a router, here one of a few lines."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.client import Context, resolution
from stablecast.core.protocol.settings import StoreConfig
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.resolver import RelayDaemon
from stablecast.runtime import ports
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.request_port import Peer, RequestPort
from stablecast.runtime.routing import Routing
from stablecast.runtime.stream import Item
from stablecast.store.store import Store, StoreSettings
from stablecast.transports.codec.routed import destination_of, hopped
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr, lbmr_extended
from tests.adapters.lab.world.scene import scene
from tests.support.network import until

HOST = "127.0.0.1"
DOMAINS = (1, 2)
SENT = 5
NAMED = "FAR-STORE"


@attrs.define
class Forwarder:
    """A router between domains 1 and 2 that forwards unicast, `copies` times.

    Attributes:
        passed: The first headers of what it forwarded, with the domain to which it went.
        addresses: Its request port in each domain.
    """

    copies: int = 1
    passed: Counter[tuple[type[h.Header], int]] = attrs.field(factory=Counter)
    addresses: dict[int, str] = attrs.field(factory=dict)
    _pools: dict[int, ConnectionPool] = attrs.field(factory=dict)

    async def open(self, stack: AsyncExitStack) -> None:
        for domain in DOMAINS:
            self._pools[domain] = ConnectionPool(lambda _: None, lambda _: None, HOST)
            listening = ports.listen_in_range(HOST, (14_391, 14_399))
            self.addresses[domain] = f"{HOST}:{listening.getsockname()[1]}"
            port = RequestPort(listening, self._forward)
            await port.start()
            stack.push_async_callback(port.close)
            stack.push_async_callback(self._pools[domain].close)

    def _forward(self, items: list[Item], _: Peer) -> None:
        for item in items:
            assert isinstance(item, lbmc.Message)
            way = destination_of(item)
            assert way is not None
            rest = [one for one in item.headers if not isinstance(one, h.Destination | h.Stream)]
            self.passed[type(rest[0]), way.destination.domain] += 1
            address = f"{way.destination.ip}:{way.destination.port}"
            for _copy in range(self.copies):
                self._pools[way.destination.domain].send(address, hopped(lbmc.encode(item)))

    def connect(self, routing: Routing, domain: int) -> None:
        """Tell an endpoint what resolution tells it in a domain with this router."""
        routing.learn(domain)
        routing.route(3 - domain, self.addresses[domain])


@attrs.define
class Network:
    """A relay that everybody hears, for the data; a store in domain 2, and contexts in any of both."""

    stack: AsyncExitStack
    relay: RelayDaemon
    store: Store
    router: Forwarder
    trace: Path | None

    async def context(self, session_id: int, domain: int) -> Context:
        context = await self.stack.enter_async_context(
            Context(resolver=[self.relay.address], session_id=session_id, trace=self.trace)
        )
        if domain:
            self.router.connect(context.pool.routing, domain)
        return context

    async def near_store(self) -> str:
        """Start a store in domain 1, and return its address there."""
        directory = new_directory("near")
        store = Store(
            StoreSettings(f"{HOST}:0", directory, StoreConfig("", seed=2), new=True, resolver=(self.relay.address,))
        )
        await store.start()
        self.stack.push_async_callback(store.stop)
        self.router.connect(store._pool.routing, 1)
        return store.address

    @property
    def far(self) -> str:
        return f"2:{self.store.address}"


def new_directory(name: str = "store") -> Path:
    directory = Path(name)
    directory.mkdir()
    return directory


@asynccontextmanager
async def network(copies: int = 1, trace: Path | None = None) -> AsyncIterator[Network]:
    async with AsyncExitStack() as stack:
        relay = await RelayDaemon.start(HOST, 0)
        stack.push_async_callback(relay.close)
        router = Forwarder(copies)
        await router.open(stack)
        settings = StoreSettings(
            f"{HOST}:0",
            new_directory(),
            StoreConfig("", seed=1),
            new=True,
            trace=trace,
            resolver=(relay.address,),
            context_name=NAMED,
        )
        store = Store(settings)
        await store.start()
        stack.push_async_callback(store.stop)
        router.connect(store._pool.routing, 2)
        yield Network(stack, relay, store, router, trace)


def play(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a program on a simulated machine."""
    with scene() as world:
        (process,) = world.run_programs(host=lambda: asyncio.run(main()))
        return process.status


async def first(receiver: Any, count: int) -> list[bytes]:
    found = []
    async for message in receiver:
        found.append(message.payload)
        if len(found) == count:
            return found
    return found


def refused(oddities: Counter[str]) -> dict[str, int]:
    """What was not believed."""
    return {what: count for what, count in oddities.items() if what.startswith(("foreign", "routed", "malformed"))}


@pytest.mark.rows("R-220", "R-221", "R-228")
def test_a_source_and_a_receiver_use_a_store_in_another_domain() -> None:
    """Registration, stability, late join and consumption; each of them passes the router, both ways."""

    async def main() -> tuple[list[bytes], set[tuple[type[h.Header], int]], dict[str, int], list[str]]:
        async with network() as net:
            shop = await net.context(1, 1)
            source = await shop.source("orders", stores=[net.far])
            for number in range(SENT):
                await (await source.send(b"%d" % number)).stable()
            desk, found = await net.context(2, 1), list[bytes]()
            desk.receiver("orders", on_message=lambda message: found.append(message.payload))
            await asyncio.sleep(40)
            everybody = Counter[str]()
            for oddities in (net.store.oddities, shop.oddities, desk.oddities):
                everybody += oddities
            clients = [one.client.reply_to for one in net.store._machine.status.clients.values()]
            return found, set(net.router.passed), refused(everybody), clients

    found, passed, odd, clients = play(main)
    assert found == [b"%d" % number for number in range(SENT)]
    assert {(h.Preg, 2), (h.PregResp, 1), (h.Ack, 1), (h.Ack, 2), (h.RxReq, 2), (h.CtxInstD, 1)} <= passed
    assert {(h.Keepalive, 1), (h.Keepalive, 2)} & passed
    assert odd == {}
    assert [address.partition(":")[0] for address in clients] == ["1", "1"]


@pytest.mark.rows("R-112", "R-230")
def test_the_first_registration_waits_for_the_domain_and_the_route() -> None:
    """A program hears of its domain and of routers up to some seconds after its start."""

    async def main() -> tuple[float, dict[str, int]]:
        async with network() as net:
            shop = await net.context(1, 0)
            source = await shop.source("orders", stores=[net.far], wait=False)
            await asyncio.sleep(1.1)
            net.router.connect(shop.pool.routing, 1)
            before = asyncio.get_running_loop().time()
            await source.registered()
            took = asyncio.get_running_loop().time() - before
            return took, refused(shop.oddities + net.store.oddities)

    took, odd = play(main)
    assert took < 0.1  # A registration is repeated every half second.
    assert odd == {}


def test_what_a_router_repeats_is_taken_once() -> None:
    async def main() -> tuple[list[bytes], dict[str, int], int]:
        async with network(copies=2) as net:
            shop, desk = await net.context(1, 1), await net.context(2, 1)
            source = await shop.source("orders", stores=[net.far])
            for number in range(SENT):
                await (await source.send(b"%d" % number)).stable()
            found = await first(desk.receiver("orders"), SENT)
            await asyncio.sleep(1)
            odd = refused(shop.oddities + desk.oddities + net.store.oddities)
            return found, odd, net.router.passed.total()

    found, odd, passed = play(main)
    assert found == [b"%d" % number for number in range(SENT)]
    assert odd == {"routed-twice": passed}


@pytest.mark.rows("R-221")
def test_the_own_domain_written_out_is_no_domain() -> None:
    """Also where the number is known only later, and in the domain of the store for its receivers."""

    async def main() -> tuple[list[bytes], int, list[str], dict[str, int]]:
        async with network() as net:
            shop, desk = await net.context(1, 0), await net.context(2, 2)
            source = await shop.source("orders", stores=[net.far], wait=False)
            shop.pool.routing.learn(2)
            await source.registered()
            for number in range(SENT):
                await (await source.send(b"%d" % number)).stable()
            found = await first(desk.receiver("orders"), SENT)
            clients = [one.client.reply_to for one in net.store._machine.status.clients.values()]
            odd = refused(shop.oddities + desk.oddities + net.store.oddities)
            return found, net.router.passed.total(), clients, odd

    found, passed, clients, odd = play(main)
    assert found == [b"%d" % number for number in range(SENT)]
    assert (passed, odd) == (0, {})
    assert not [address for address in clients if address.count(":") > 1]


@pytest.mark.rows("R-225")
def test_the_domains_of_announced_stores_are_those_of_the_source() -> None:
    """A receiver in the domain of the store reaches it there; the source's request port is in the other one."""

    async def main() -> tuple[list[str], str, dict[str, int], bool]:
        async with network() as net:
            shop, desk = await net.context(1, 1), await net.context(2, 2)
            source = await shop.source("orders", stores=[net.far])
            await (await source.send(b"0")).stable()
            receiver = desk.receiver("orders")
            assert await first(receiver, 1) == [b"0"]
            (session,) = receiver._sessions.values()
            assert session.info is not None
            stores = [entry.address for entry in session.info.stores]
            return stores, session.info.request, refused(desk.oddities), stores == [net.store.address]

    stores, request, odd, near = play(main)
    assert near, stores
    assert request.startswith("1:")
    assert odd == {}


@pytest.mark.rows("R-236")
def test_stores_in_two_domains_make_one_quorum() -> None:
    """Each side knows the stores there by plain addresses, and the others by their domain."""

    async def main() -> tuple[list[bytes], set[str], set[str], dict[str, int]]:
        async with network() as net:
            near = await net.near_store()
            shop, desk, found = await net.context(1, 1), await net.context(2, 2), list[bytes]()
            source = await shop.source("orders", stores=[near, net.far])
            receiver = desk.receiver("orders", on_message=lambda message: found.append(message.payload))
            for number in range(SENT):
                await (await source.send(b"%d" % number)).stable()
            await asyncio.sleep(5)
            (session,) = receiver._sessions.values()
            known = {one.address for one in session._machine.status.registrations.values()}
            odd = refused(shop.oddities + desk.oddities + net.store.oddities)
            return found, known, {f"1:{near}", net.store.address}, odd

    found, known, expected, odd = play(main)
    assert found == [b"%d" % number for number in range(SENT)]
    assert known == expected
    assert odd == {}


async def test_traces_of_both_domains_are_judged_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same store and the same message have other addresses on the other side."""
    monkeypatch.chdir(tmp_path)
    async with network(trace=tmp_path / "run") as net:
        shop, desk = await net.context(1, 1), await net.context(2, 1)
        source = await shop.source("orders", stores=[net.far])
        for number in range(SENT):
            await (await source.send(b"%d" % number)).stable()
        assert await first(desk.receiver("orders"), SENT) == [b"%d" % number for number in range(SENT)]
    summary = verify_paths(find([tmp_path / "run"]))
    assert (summary.violations, summary.noted) == ([], [])
    assert len(summary.files) == 3


def test_readers_ask_stores_in_other_domains() -> None:
    async def main() -> list[bytes]:
        async with network() as net:
            shop = await net.context(1, 1)
            source = await shop.source("orders", stores=[net.far])
            for number in range(SENT):
                await (await source.send(b"%d" % number)).stable()
            desk = await net.context(0, 1)
            async with desk.reader("orders", stores=[net.far]) as reader:
                return [message.payload async for message in reader]

    assert play(main) == [b"%d" % number for number in range(SENT)]


async def routes_of_a_relay(sock: socket.socket, domain: int, reached: int, router: str) -> None:
    """Answer the first datagram of a context as the relay through which a router speaks."""
    _, context = await asyncio.get_running_loop().sock_recvfrom(sock, 2_000)
    host, _, port = router.rpartition(":")
    body = lbmr_extended.DomainRoute(count=1, address=host, port=int(port), length=20, domains=(reached,))
    trailer = lbmr.standard_options(b"router.1", lbmr.SourceType.GATEWAY, domain=domain)
    sock.sendto(lbmr_extended.encode(lbmr_extended.Packet(body, trailer)), context)


@pytest.fixture
def relay() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HOST, 0))
        sock.setblocking(False)
        yield sock


@pytest.mark.rows("T-203")
async def test_a_context_learns_its_domain_and_the_routes(relay: socket.socket) -> None:
    where = f"{HOST}:{relay.getsockname()[1]}"
    options = resolution(options={"resolver_unicast_force_alive": 1})
    async with Context(resolver=[where], resolution=options) as context:
        await routes_of_a_relay(relay, 1, 2, f"{HOST}:14392")
        routing = context.pool.routing
        await until(lambda: routing.routes)
        assert (routing.domain, routing.routes) == (1, {2: f"{HOST}:14392"})


async def test_a_context_may_be_given_its_domain(relay: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    where = f"{HOST}:{relay.getsockname()[1]}"
    options = resolution(options={"resolver_domain_id": 5})
    async with Context(resolver=[where], resolution=options) as context:
        assert context.pool.routing.domain == 5
        await routes_of_a_relay(relay, 6, 2, f"{HOST}:14392")
        await until(lambda: context.pool.routing.routes)
        assert context.pool.routing.domain == 5
    assert [record for record in caplog.records if "domain 6 is announced" in record.message]
    async with Context(resolution=options) as context:
        assert context.pool.routing.domain == 5


@pytest.mark.parametrize(("name", "options"), [("NAMED", {}), ("", {"resolver_unicast_force_alive": 1})])
async def test_a_store_learns_its_domain_and_the_routes(
    name: str, options: dict[str, int], relay: socket.socket, tmp_path: Path
) -> None:
    """Also one without a name, if it is told to take part in resolution."""
    where = f"{HOST}:{relay.getsockname()[1]}"
    config = StoreConfig("", seed=1)
    store = Store(
        StoreSettings(f"{HOST}:0", tmp_path, config, new=True, resolver=(where,), context_name=name, resolution=options)
    )
    await store.start()
    try:
        await routes_of_a_relay(relay, 2, 1, f"{HOST}:14392")
        routing = store._pool.routing
        await until(partial(routing.hop, "1:10.0.0.1:1"))
        assert (routing.domain, routing.routes) == (2, {1: f"{HOST}:14392"})
    finally:
        await store.stop()
