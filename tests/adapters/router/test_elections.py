"""Stores of two domains that elect a proxy for a source that is gone."""

import asyncio
from collections.abc import Callable

import attrs
import pytest

from stablecast.config.option_kinds import Value
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.settings import StoreConfig
from stablecast.lab.world.process import SimulatedProcess
from tests.adapters.lab.world.scene import Scene, scene
from tests.adapters.router.test_daemon import TRANSPORTS
from tests.adapters.router.test_hosts import MESSAGES, NAMES, STORE, Site
from tests.support.abstract_states import abstract

SOURCE: dict[str, Value] = {"ume_proxy_source": 1, "ume_activity_timeout": 15_000}
HALF = len(MESSAGES) // 2
STORES = {1: 1, 2: 2}


@attrs.define
class Election:
    """A source of domain 1, and stores that may stand in for it.

    Attributes:
        quorum: Whether only stores with state of the source elect.
        eager: The store that waits for the shortest time.
        homes: The domain of each store.
        begun: The number with which each life of the source began, once all that it sent is stable.
    """

    site: Site
    quorum: bool = False
    eager: int = 1
    homes: dict[int, int] = attrs.field(factory=STORES.copy)
    begun: list[int] = attrs.field(factory=list)
    selling: list[SimulatedProcess] = attrs.field(factory=list)
    keeping: dict[int, SimulatedProcess] = attrs.field(factory=dict)

    @property
    def world(self) -> Scene:
        return self.site.scene

    def place(self, store: int) -> str:
        return f"{self.homes[store]}:{self.site.address(self.homes[store])}:{STORE + store}"

    async def store(self, store: int) -> None:
        interval = (5 if store == self.eager else 20) * SECOND
        config = StoreConfig("", seed=1, allow_proxy=True, proxy_interval_ns=interval, proxy_quorum=self.quorum)
        await self.site.keep(self.homes[store], self.place(store).partition(":")[2], str(store), config)

    async def sell(self) -> None:
        """Send one half of the messages with each life."""
        stores, options = [self.place(store) for store in self.homes], TRANSPORTS[self.site.transport] | SOURCE
        async with self.site.context(1) as shop:
            source = await shop.source("orders", stores=stores, options=options, wait=False)
            await source.registered()
            begin = source.next_number
            await source.send_many(MESSAGES[begin : begin + HALF])
            await source.wait_stable(source.next_number - 1)
            self.begun.append(begin)
            await asyncio.Event().wait()

    async def book(self, domain: int, found: list[bytes], count: int) -> None:
        async with self.site.context(domain) as desk:
            desk.session_id = 1_000 * domain + count
            async for message in desk.receiver("orders"):
                found.append(message.payload)
                if len(found) == count:
                    return

    def begin(self) -> None:
        """Start the stores, then the source, and wait until its messages are stable and its SRI has passed."""
        for store, domain in self.homes.items():
            self.keeping[store] = self.world.start(lambda one=store: self.store(one), NAMES[domain])  # type: ignore[misc]
        self.sell_on()
        self.world.pass_time(5)

    def sell_on(self) -> None:
        lives = len(self.begun)
        self.selling.append(self.world.start(self.sell, NAMES[1]))
        self.until(lambda: len(self.begun) > lives)

    def until(self, condition: Callable[[], bool], seconds: float = 300) -> None:
        self.world.kernel.run(condition, self.world.now + int(seconds * SECOND))
        assert condition(), (self.world.seconds, self.states(), self.begun)

    def states(self) -> dict[int, str]:
        return {
            number: state
            for number, process in self.keeping.items()
            if not process.gone and (store := self.site.stores.get(str(number))) is not None
            for _, (state, _, _) in abstract(store._machine.registry.elections)
        }

    def one_proxy(self) -> bool:
        states = [*self.states().values()]
        return (states.count("SERVING"), states.count("FOLLOWING")) == (1, len(states) - 1)

    def receive(self, count: int) -> None:
        """A new receiver in each domain gets so many messages, from the first on."""
        found: dict[int, list[bytes]] = {domain: [] for domain in NAMES}
        booking = [
            self.world.start(lambda one=domain: self.book(one, found[one], count), name)  # type: ignore[misc]
            for domain, name in NAMES.items()
        ]
        self.until(lambda: all(one.gone for one in booking))
        assert found == dict.fromkeys(NAMES, MESSAGES[:count])


@pytest.mark.rows("P-542", "R-234", "R-235")
@pytest.mark.parametrize("quorum", [False, True])
@pytest.mark.parametrize("eager", list(STORES))
@pytest.mark.parametrize("kind", list(TRANSPORTS))
def test_stores_of_two_domains_elect_one_proxy(kind: str, eager: int, quorum: bool) -> None:
    """It serves receivers of both domains, and ends when the source returns, which goes on where it was."""
    with scene() as world:
        election = Election(Site.of(world, kind), quorum, eager)
        election.begin()
        election.selling[0].kill()
        election.until(election.one_proxy)
        assert election.states()[eager] == "SERVING"
        election.receive(HALF)
        assert election.one_proxy()
        election.sell_on()
        election.until(lambda: set(election.states().values()) == {"WATCHING"})
        assert election.begun == [0, HALF]
        election.receive(2 * HALF)


@pytest.mark.parametrize("eager", list(STORES))
def test_when_the_store_of_the_proxy_dies_one_beyond_the_router_stands(eager: int) -> None:
    with scene() as world:
        election = Election(Site.of(world, "tcp"), eager=eager, homes=STORES | {3: 3 - STORES[eager]})
        election.begin()
        election.selling[0].kill()
        election.until(election.one_proxy)
        assert election.states()[eager] == "SERVING"
        election.keeping[eager].kill()
        election.until(lambda: eager not in election.states() and election.one_proxy())
        election.receive(HALF)


@pytest.mark.parametrize("eager", list(STORES))
def test_of_two_proxies_that_were_cut_off_one_remains(eager: int) -> None:
    """Without the router each domain elects its own; it returns, and the lower token wins in both."""
    with scene() as world:
        election = Election(site := Site.of(world, "tcp"), eager=eager)
        election.begin()
        assert site.router is not None
        site.router.kill()
        election.selling[0].kill()
        election.until(lambda: [*election.states().values()] == ["SERVING"] * 2)
        site.begin_router()
        election.until(election.one_proxy)
        election.receive(HALF)
        assert election.one_proxy()


def test_a_source_that_was_cut_off_from_a_store_gets_its_place_back() -> None:
    """While the router is away, a store beyond it stands in for a living source."""
    with scene() as world:
        election = Election(site := Site.of(world, "tcp"), eager=2)
        election.begin()
        assert site.router is not None
        site.router.kill()
        election.until(lambda: election.states() == {1: "WATCHING", 2: "SERVING"})
        site.begin_router()
        election.until(lambda: election.states() == {1: "WATCHING", 2: "WATCHING"})
        election.receive(HALF)
        assert election.begun == [0]
