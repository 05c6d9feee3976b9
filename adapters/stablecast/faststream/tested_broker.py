r"""A broker of FastStream for tests, with real redelivery and real crashes.

With a broker, it starts a relay and stores on loopback, and the messages pass through them:

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("apples", "orders")
        await book.wait_call(timeout=10)

With a world of `stablecast.testing`, the application is a program on a host that may crash. A crash forgets all that
was in memory, so the argument is a function that makes the broker; it is called at each start of the program:

    @stablecast.testing.world(seeds=50, faults=crash("app") | crash("store"))
    async def test_each_order_is_booked_once(world):
        async with TestStablecastBroker(application, world=world) as shop:
            await shop.publish("apples", "orders")
            await world.settled()
        assert world.read("app", "book") == b"apples\n"
"""

import asyncio
import tempfile
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

from faststream._internal.testing.broker import EnterType, TestBroker

from stablecast.core.errors import MisuseError
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.faststream.broker import StablecastBroker
from stablecast.faststream.connection import BrokerConnection
from stablecast.faststream.publisher import BrokerPublisher
from stablecast.faststream.subscriber import BrokerSubscriber
from stablecast.resolver import RelayDaemon
from stablecast.store.store import Store, StoreSettings

if TYPE_CHECKING:
    from stablecast.testing import SimulatedWorld

LOOPBACK: Final = "127.0.0.1"
STORES: Final = 1
"""Stores of a test without a world, by default."""

TEST_SESSION: Final = 1
APP_SESSION: Final = 2
"""Session ids of the test and of the application, unless its broker has one."""

Application = Callable[[], StablecastBroker]
"""Makes the broker of an application with its handlers."""


class TestStablecastBroker(TestBroker[StablecastBroker, EnterType], broker=StablecastBroker):
    """A broker for tests. Use it inside `async with`, which returns the broker to publish by."""

    @overload
    def __init__(
        self: "TestStablecastBroker[StablecastBroker]",
        broker: StablecastBroker | Application,
        /,
        *,
        world: "SimulatedWorld | None" = None,
        host: str = "app",
        stores: int = STORES,
        with_real: bool = False,
        connect_only: bool | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: "TestStablecastBroker[tuple[StablecastBroker, ...]]",
        *brokers: StablecastBroker,
        stores: int = STORES,
        with_real: bool = False,
        connect_only: bool | None = None,
    ) -> None: ...

    def __init__(
        self,
        *brokers: StablecastBroker | Application,
        world: "SimulatedWorld | None" = None,
        host: str = "app",
        stores: int = STORES,
        with_real: bool = False,
        connect_only: bool | None = None,
    ) -> None:
        """Prepare a test.

        Args:
            brokers: The brokers; with a world, one function that makes the broker of the application.
            world: The world in which the application runs.
            host: The host of the application in the world.
            stores: The number of stores on loopback, without a world.
            with_real: Use the relay and the stores that the brokers name, instead of own ones.
            connect_only: As for other brokers of FastStream.

        Raises:
            MisuseError: A world got a broker, or there is a function without a world.
        """
        made = [broker for broker in brokers if isinstance(broker, StablecastBroker)]
        if world is not None and (made or len(brokers) != 1):
            raise MisuseError(
                "give a world a function that makes the broker: a crash forgets what the broker remembers"
            )
        if world is None and len(made) != len(brokers):
            raise MisuseError("a function that makes a broker needs a world: TestStablecastBroker(make, world=world)")
        with warnings.catch_warnings():
            # It reads the source of the caller, and warns if that has `async with name:` inside.
            warnings.simplefilter("ignore", RuntimeWarning)
            super().__init__(*made, with_real=True, connect_only=connect_only)
        self._applications = [broker for broker in brokers if not isinstance(broker, StablecastBroker)]
        self._world, self._host, self._stores, self._own = world, host, stores, not with_real

    @asynccontextmanager
    async def _create_ctx(self) -> AsyncGenerator[list[StablecastBroker], None]:
        async with AsyncExitStack() as stack:
            if self._world is not None:
                yield [await stack.enter_async_context(self._in_world(self._world))]
                return
            if self._own:
                resolver, stores = await stack.enter_async_context(local_stores(self._stores))
                for number, broker in enumerate(self.brokers):
                    place(broker.connection, {"resolver": [resolver]}, stores, APP_SESSION + number)
            yield await stack.enter_async_context(super()._create_ctx())

    @asynccontextmanager
    async def _in_world(self, world: "SimulatedWorld") -> AsyncGenerator[StablecastBroker, None]:
        world.start(serve, self._applications[0], world.context_of(self._host), world.stores, host=self._host)
        shop = StablecastBroker(stores=world.stores, session_id=TEST_SESSION, context_arguments=world.context)
        async with shop:
            await shop.start()
            yield shop

    def create_publisher_fake_subscriber(
        self, broker: StablecastBroker, publisher: BrokerPublisher
    ) -> tuple[BrokerSubscriber, bool]:
        """Return a subscriber of what a publisher sends, and whether it is one of the broker."""
        for known in broker.subscribers:
            if isinstance(known, BrokerSubscriber) and known.topic == publisher.topic:
                return known, True
        return broker.subscriber(publisher.topic, persistent=False), False

    async def _fake_connect(self, broker: StablecastBroker, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the brokers connect to real stores."""


async def serve(make: Application, context: Mapping[str, Any], stores: Sequence[str]) -> None:
    """Run the broker of an application on a host of a world, as a program."""
    broker = make()
    place(broker.connection, context, stores)
    async with broker:
        await broker.start()
        await asyncio.Event().wait()


def place(
    connection: BrokerConnection, context: Mapping[str, Any], stores: Sequence[str], session_id: int = APP_SESSION
) -> None:
    """Let a broker use this resolver and these stores, and this session id unless it has one."""
    known = connection.arguments.get("session_id") or session_id
    connection.arguments = {**connection.arguments, **context, "session_id": known}
    connection.stores = list(stores)


@asynccontextmanager
async def local_stores(count: int) -> AsyncGenerator[tuple[str, list[str]], None]:
    """Run a relay and stores on loopback, on free ports; yield the address of the relay and those of the stores."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stablecast-")))
        relay = await RelayDaemon.start(LOOPBACK, 0)
        stack.push_async_callback(relay.close)
        stores = []
        for number in range(count):
            listen, place_of = f"{LOOPBACK}:0", directory / f"store{number}"
            place_of.mkdir()
            config = StoreConfig(listen, seed=number, repository=RepositoryConfig())
            store = Store(StoreSettings(listen, place_of, config, new=True))
            await store.start()
            stack.push_async_callback(store.stop)
            stores.append(store.address)
        yield relay.address, stores
