"""Routers on hosts of their own, linked over TCP: all that passes between domains passes links, which break."""

import asyncio
from collections.abc import Callable

import attrs
import pytest

from stablecast.client import Context, resolution
from stablecast.config.option_kinds import Value
from stablecast.core.protocol.settings import StoreConfig
from stablecast.lab.world.process import SimulatedProcess
from stablecast.resolver import RelayDaemon
from stablecast.router.config import PeerConfig, PortalConfig, RouterConfig
from stablecast.router.daemon import RouterDaemon
from stablecast.store.store import Store, StoreSettings
from tests.adapters.lab.world.scene import Scene, scene
from tests.adapters.router.test_daemon import TRANSPORTS, configuration
from tests.adapters.router.test_persistence import made

RELAY, STORE, LINK = 15_380, 14_567, 14_380
MESSAGES = [str(number).encode() for number in range(300)]

CHAIN = ((0, 1), (1, 2))
RING = ((0, 1), (1, 2), (0, 2))


@attrs.define
class Sites:
    """Domain n + 1 has the hosts `site-n`, with all its programs, and `edge-n` with its router.

    Hosts of different domains do not reach each other, but routers that are linked. The second of a link connects.
    """

    scene: Scene
    links: tuple[tuple[int, int], ...]
    routers: list[SimulatedProcess | None]
    daemons: dict[int, RouterDaemon] = attrs.field(factory=dict)
    found: dict[int, list[bytes]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, world: Scene, domains: int, *links: tuple[int, int]) -> "Sites":
        for number in range(domains):
            world.host(f"site-{number}")
            world.host(f"edge-{number}")
        found = cls(world, links, [None] * domains)
        for one in range(domains):
            for other in range(domains):
                if one != other:
                    world.cut(world.host(f"site-{one}"), world.host(f"edge-{other}"))
                    if one < other:
                        world.cut(world.host(f"site-{one}"), world.host(f"site-{other}"))
                        if (one, other) not in links:
                            world.cut(world.host(f"edge-{one}"), world.host(f"edge-{other}"))
        for number in range(domains):
            world.start(lambda one=number: found.find(one), f"site-{number}")  # type: ignore[misc]  # the loop's
            found.begin(number)
        return found

    def address(self, number: int, host: str = "site") -> str:
        return self.scene.host(f"{host}-{number}").address

    def finder(self, number: int) -> dict[str, Value]:
        return {"resolver_unicast_daemon": f"{self.address(number)}:{RELAY}"}

    async def find(self, number: int) -> None:
        await RelayDaemon.start(self.address(number), RELAY)
        await asyncio.Event().wait()

    def begin(self, number: int) -> None:
        self.routers[number] = self.scene.start(lambda: self.route(number), f"edge-{number}")

    async def route(self, number: int) -> None:
        own = self.address(number, "edge")
        options = configuration(self.finder(number) | {"default_interface": own}, TRANSPORTS["tcp"])
        peers = []
        for place, (one, other) in enumerate(self.links):
            if number == one:
                peers.append(PeerConfig(f"link-{place}", port=LINK + place, interface=own))
            elif number == other:
                peers.append(PeerConfig(f"link-{place}", address=self.address(one, "edge"), port=LINK + place))
        config = RouterConfig(f"edge-{number}", (PortalConfig("home", number + 1, options=options),), tuple(peers))
        self.daemons[number] = await RouterDaemon.start(config)
        await asyncio.Event().wait()

    def kill(self, number: int) -> None:
        process = self.routers[number]
        assert process is not None
        process.kill()

    def cut(self, one: int, other: int) -> None:
        self.scene.cut(self.scene.host(f"edge-{one}"), self.scene.host(f"edge-{other}"))

    def heal(self, one: int, other: int) -> None:
        self.scene.heal(self.scene.host(f"edge-{one}"), self.scene.host(f"edge-{other}"))

    def store(self, number: int) -> None:
        self.scene.start(lambda: self.keep(number), f"site-{number}")

    async def keep(self, number: int) -> None:
        name = f"store-{number}"
        settings = StoreSettings(
            f"{self.address(number)}:{STORE}",
            made(name),
            StoreConfig("", seed=1),
            new=True,
            resolver=(str(*self.finder(number).values()),),
            context_name=name,
        )
        await Store(settings).start()
        await asyncio.Event().wait()

    def context(self, number: int) -> Context:
        found = resolution("safe", self.finder(number))
        return Context(resolution=found, interface=self.address(number), session_id=number + 1)

    async def sell(self, stores: list[str], pause: float, named: str = "") -> None:
        """Send all messages from domain 1, and stay until they are stable."""
        options = {"ume_store_name": named} if named else {}
        async with self.context(0) as shop:
            source = await shop.source("orders", stores=stores, options=options, wait=False)
            for payload in MESSAGES:
                await source.send(payload)
                await asyncio.sleep(pause)
            if stores or named:
                await source.wait_stable(source.next_number - 1)
            await asyncio.sleep(10_000)

    async def book(self, number: int, delay: float = 0, least: int = len(MESSAGES)) -> None:
        """Receive all messages in a domain."""
        found = self.found.setdefault(number, [])
        await asyncio.sleep(delay)
        async with self.context(number) as desk:
            async for message in desk.receiver("orders"):
                found.append(message.payload)
                if len(found) == least:
                    return


Story = Callable[[Sites], None]


def play(
    links: tuple[tuple[int, int], ...],
    store: int,
    story: Story = lambda _: None,
    pause: float = 0.05,
    delay: float = 0,
    named: bool = False,
) -> Sites:
    """A source in domain 1, receivers in all others, a store in one domain; return what was received."""
    with scene() as world:
        domains = 1 + max(end for link in links for end in link)
        sites = Sites.of(world, domains, *links)
        sites.store(store)
        address = f"{store + 1}:{sites.address(store)}:{STORE}" if store else f"{sites.address(0)}:{STORE}"
        name = f"store-{store}" if named else ""
        selling = world.start(lambda: sites.sell([] if named else [address], pause, name), "site-0")
        booking = [
            world.start(lambda one=one: sites.book(one, delay), f"site-{one}")  # type: ignore[misc]  # the loop's
            for one in range(1, domains)
        ]
        story(sites)
        world.kernel.run(lambda: all(one.gone for one in booking) or selling.gone, world.now + 600 * 1_000_000_000)
        for process in (selling, *booking):
            if process.error is not None:
                raise process.error
    return sites


@pytest.mark.rows("R-220", "R-257", "T-220")
@pytest.mark.parametrize("links", [((0, 1),), CHAIN, RING])
def test_a_persistent_stream_passes_links(links: tuple[tuple[int, int], ...]) -> None:
    for store in range(1 + max(end for link in links for end in link)):
        found = play(links, store).found
        assert all(payloads == MESSAGES for payloads in found.values())


@pytest.mark.rows("R-180", "R-222")
def test_a_late_receiver_and_a_store_by_its_name() -> None:
    """Across a chain: the name is asked for over two links, and the messages come from the store at the other end."""
    found = play(CHAIN, 2, delay=20, named=True, pause=0.01).found
    assert found == {1: MESSAGES, 2: MESSAGES}


@pytest.mark.rows("R-116")
@pytest.mark.parametrize("killed", [0, 1])
@pytest.mark.parametrize("store", [0, 1])
def test_a_linked_router_that_is_killed_loses_nothing_that_is_stable(killed: int, store: int) -> None:
    def story(sites: Sites) -> None:
        for _ in range(2):
            sites.scene.pass_time(8)
            sites.kill(killed)
            sites.scene.pass_time(2)
            sites.begin(killed)

    assert play(((0, 1),), store, story, pause=0.1).found == {1: MESSAGES}


@pytest.mark.parametrize("store", [0, 1])
def test_a_link_that_is_cut_and_heals_loses_nothing_that_is_stable(store: int) -> None:
    """For less than the silence that ends a link, and for more."""

    def story(sites: Sites) -> None:
        for span in (1, 6):
            sites.scene.pass_time(8)
            sites.cut(0, 1)
            sites.scene.pass_time(span)
            sites.heal(0, 1)

    assert play(((0, 1),), store, story, pause=0.1).found == {1: MESSAGES}


@pytest.mark.parametrize("link", RING)
def test_a_ring_goes_on_round_the_other_way(link: tuple[int, int]) -> None:
    """Each link is cut in turn while messages flow, and nothing that is stable is lost or comes twice."""

    def story(sites: Sites) -> None:
        sites.scene.pass_time(8)
        sites.cut(*link)
        sites.scene.pass_time(10)
        sites.heal(*link)

    sites = play(RING, 2, story, pause=0.1)
    assert sites.found == {1: MESSAGES, 2: MESSAGES}
