"""Two domains on hosts that do not reach each other: all that passes between them passes the router, which may die."""

import asyncio
from collections.abc import Callable

import attrs
import pytest

from stablecast.client import Context, resolution
from stablecast.config.option_kinds import Value
from stablecast.core.protocol.events import EndOfSource, Event
from stablecast.core.protocol.settings import StoreConfig
from stablecast.lab.world.process import SimulatedProcess
from stablecast.resolver import RelayDaemon
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.router.config import PortalConfig, RouterConfig
from stablecast.router.daemon import RouterDaemon
from stablecast.runtime.ports import IDLE_SECONDS, INTERVAL_SECONDS, PROBES
from stablecast.runtime.stream import JOIN_SECONDS
from stablecast.store.store import Store, StoreSettings
from tests.adapters.lab.world.scene import Scene, scene
from tests.adapters.router.test_daemon import TRANSPORTS, configuration
from tests.adapters.router.test_persistence import made

RELAY, STORE = 15_380, 14_567
EDGE, ROUTED = "edge", 3
MESSAGES = [str(number).encode() for number in range(300)]
NAMES = {1: "shop", 2: "desk"}


@attrs.define
class Site:
    """Hosts `shop` in domain 1 and `desk` in domain 2, and `edge` with the router, the only one that reaches both.

    The domains of `services` have a service there, the others a relay.
    """

    scene: Scene
    transport: str
    services: tuple[int, ...] = ()
    router: SimulatedProcess | None = None
    stores: dict[str, Store] = attrs.field(factory=dict)

    @classmethod
    def of(cls, scene: Scene, transport: str, services: tuple[int, ...] = ()) -> "Site":
        for name in (*NAMES.values(), EDGE):
            scene.host(name)
        scene.cut(scene.host(NAMES[1]), scene.host(NAMES[2]))
        site = cls(scene, transport, services)
        for domain, name in NAMES.items():
            scene.start(lambda one=domain: site.find(one), name)  # type: ignore[misc]  # the loop's domain
        site.begin_router()
        return site

    def address(self, domain: int) -> str:
        return self.scene.host(NAMES[domain]).address

    def finder(self, domain: int) -> dict[str, Value]:
        """Return the option by which sources are found in a domain."""
        option = "resolver_service" if domain in self.services else "resolver_unicast_daemon"
        return {option: f"{self.address(domain)}:{RELAY}"}

    async def find(self, domain: int) -> None:
        if domain in self.services:
            await SrsDaemon.start(SrsConfig(interface=self.address(domain), port=RELAY), lambda _: None)
        else:
            await RelayDaemon.start(self.address(domain), RELAY)
        await asyncio.Event().wait()

    def begin_router(self) -> None:
        self.router = self.scene.start(self.route, EDGE)

    async def route(self) -> None:
        own = self.scene.host(EDGE).address
        portals = tuple(
            PortalConfig(
                name,
                domain,
                options=configuration(
                    self.finder(domain) | {"default_interface": own},
                    TRANSPORTS[self.transport],
                ),
            )
            for domain, name in NAMES.items()
        )
        await RouterDaemon.start(RouterConfig(EDGE, portals))
        await asyncio.Event().wait()

    async def store(self, domain: int) -> None:
        await self.keep(domain, f"{self.address(domain)}:{STORE}", f"store-{domain}", StoreConfig("", seed=1))

    async def keep(self, domain: int, address: str, name: str, config: StoreConfig) -> None:
        found = (str(*self.finder(domain).values()),)
        relays, services = ((), found) if domain in self.services else (found, ())
        settings = StoreSettings(
            address, made(name), config, new=True, resolver=relays, resolver_service=services, context_name=name
        )
        self.stores[name] = Store(settings)
        await self.stores[name].start()
        await asyncio.Event().wait()

    async def stay(self) -> None:
        await asyncio.Event().wait()

    def context(self, domain: int, host: str = "") -> Context:
        found = resolution("safe", self.finder(domain))
        where = self.scene.host(host).address if host else self.address(domain)
        return Context(resolution=found, interface=where, session_id=domain)


async def sell(site: Site, store: str, pause: float) -> None:
    """Send all messages, and stay until they are stable."""
    async with site.context(1) as shop:
        source = await shop.source("orders", stores=[store], options=TRANSPORTS[site.transport], wait=False)
        for payload in MESSAGES:
            await source.send(payload)
            await asyncio.sleep(pause)
        await source.wait_stable(source.next_number - 1)
        await asyncio.sleep(1_000)


async def book(site: Site, found: list[bytes]) -> None:
    async with site.context(2) as desk:
        async for message in desk.receiver("orders"):
            found.append(message.payload)
            if len(found) == len(MESSAGES):
                return


def play(kind: str, home: int, story: Callable[[Site, list[bytes]], None], pause: float = 0.01) -> list[bytes]:
    found: list[bytes] = []
    with scene() as world:
        site = Site.of(world, kind)
        world.start(lambda: site.store(home), NAMES[home])
        store = f"{site.address(home)}:{STORE}" if home == 1 else f"2:{site.address(home)}:{STORE}"
        selling = world.start(lambda: sell(site, store, pause), NAMES[1])
        booking = world.start(lambda: book(site, found), NAMES[2])
        story(site, found)
        world.kernel.run(lambda: booking.gone or selling.gone, world.now + 600 * 1_000_000_000)
        for process in (booking, selling):
            if process.error is not None:
                raise process.error
    return found


@pytest.mark.rows("R-220", "T-006", "T-220")
@pytest.mark.parametrize("kind", list(TRANSPORTS))
@pytest.mark.parametrize("home", [1, 2])
def test_everything_passes_the_router(home: int, kind: str) -> None:
    assert play(kind, home, lambda _site, _found: None) == MESSAGES


@pytest.mark.rows("R-115", "R-116")
@pytest.mark.parametrize("kind", list(TRANSPORTS))
@pytest.mark.parametrize("home", [1, 2])
def test_a_router_that_is_killed_loses_nothing_that_is_stable(home: int, kind: str) -> None:
    """Twice, while messages flow; the next one takes over what it finds."""

    def story(site: Site, found: list[bytes]) -> None:
        for _ in range(2):
            site.scene.pass_time(8)
            assert site.router is not None
            site.router.kill()
            site.scene.pass_time(2)
            site.begin_router()

    assert play(kind, home, story, pause=0.1) == MESSAGES


@pytest.mark.parametrize("leaving", list(TRANSPORTS))
def test_a_host_that_vanishes_leaves_no_proxy(leaving: str) -> None:
    """Nobody resets its TCP stream. The kernel's probes find it, the portal cannot join again, and the proxy ends."""
    ended: list[Event] = []
    with scene() as world:
        site = Site.of(world, leaving)
        world.cut(world.host("till"), world.host(NAMES[2]))

        async def offer() -> None:
            async with site.context(1, "till") as till:
                source = await till.source("orders", stores=[], options=TRANSPORTS["tcp"], wait=False)
                await source.send(b"0")
                await asyncio.Event().wait()

        async def hear() -> None:
            async with site.context(2) as desk:
                receiver = desk.receiver("orders", on_event=ended.append, options={"ume_use_store": 0})
                async for _ in receiver:
                    pass

        world.start(hear, NAMES[2])
        world.start(offer, "till")
        world.pass_time(20)
        assert not of_end(ended)
        world.host("till").cut_power()
        world.pass_time(IDLE_SECONDS + INTERVAL_SECONDS * PROBES + JOIN_SECONDS + 2)
        assert of_end(ended)


def of_end(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, EndOfSource)]
