"""Stores, a relay and contexts on loopback in one event loop, and checks of the resources that they leave open."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any

import attrs

from stablecast.client import Context
from stablecast.config.transport_options import TransportConfig
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.resolver import RelayDaemon
from stablecast.runtime import datagrams, ports
from stablecast.runtime.ports import PortError
from stablecast.store.store import Store, StoreSettings

LOCAL = "127.0.0.1"


class Events(list[Event]):
    """An `on_event` callback that records events. `await events.first(kind)` waits for the first of a kind."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.append(event)
        self._changed.set()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]

    async def first(self, kind: type[Any], count: int = 1) -> Any:
        while len(self.of(kind)) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.of(kind)[count - 1]


KEPT = RepositoryConfig()
"""Default settings of the repositories in a network."""


@attrs.define
class Network:
    """The running stores by name, and the relays."""

    stack: AsyncExitStack
    directory: Path
    stores: dict[str, Store] = attrs.field(factory=dict)
    relays: list[RelayDaemon] = attrs.field(factory=list)

    async def store(
        self,
        name: str = "store",
        listen: str = f"{LOCAL}:0",
        transports: TransportConfig | None = None,
        changes: Mapping[str, Any] | None = None,
        **repository: Any,
    ) -> str:
        """Start a store, or start it again with its disk; return its address. `changes` apply to its `StoreConfig`."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        kept = attrs.evolve(KEPT, **repository)
        settings = attrs.evolve(StoreConfig(listen, seed=len(name), repository=kept), **changes or {})
        store = Store(StoreSettings(listen, directory, settings, new=True, transports=transports or TransportConfig()))
        await store.start()
        self.stores[name] = store
        return store.address

    async def stop(self, name: str = "store") -> str:
        """Stop a store; return its address for a restart."""
        store = self.stores.pop(name)
        await store.stop()
        return store.address

    async def context(self, **arguments: Any) -> Context:
        """Open a context that uses the network's relay."""
        if not self.relays:
            self.relays.append(await RelayDaemon.start(LOCAL, 0))
            self.stack.push_async_callback(self.relays[0].close)
        return await self.stack.enter_async_context(Context(resolver=[self.relays[0].address], **arguments))

    async def close(self) -> None:
        for name in list(self.stores):
            await self.stop(name)


@asynccontextmanager
async def network(directory: Path) -> AsyncIterator[Network]:
    """Yield an empty network, and stop its members at the end."""
    async with AsyncExitStack() as stack:
        started = Network(stack, directory)
        stack.push_async_callback(started.close)
        yield started


async def drop(context: Context) -> None:
    """End a context as a crash does: it sends no last message, and the kernel closes the sockets."""
    for receiver in list(context._receivers.values()):
        for session in receiver._sessions.values():
            session._driver.close()
    for source in list(context._sources.values()):
        source._driver.close()
    context.pool.send = lambda *_: None  # type: ignore[method-assign]
    await context.close()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that no event reports."""
    while not condition():  # noqa: ASYNC110  # a white-box condition
        await asyncio.sleep(0.001)


UNUSED_PORTS = range(20_000, 30_000)
"""The system hands out none of these by itself, so that no socket gets one before the test that asked for it."""


def unused_port() -> int:
    """Return a port that no stream and no datagram socket of this machine has."""
    for port in SystemRandom().sample(UNUSED_PORTS, len(UNUSED_PORTS)):
        with ExitStack() as stack, suppress(PortError):
            stack.enter_context(ports.listen(LOCAL, port, "port"))
            stack.enter_context(datagrams.bind(LOCAL, port))
            return port
    raise AssertionError("all are in use")


def sockets() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue  # the descriptor that listed the folder
        if target.startswith("socket:"):
            found.add(target)
    return found


def others() -> set["asyncio.Task[Any]"]:
    """Return every task except the current one."""
    return asyncio.all_tasks() - {asyncio.current_task()}


def knocking(port: int) -> socket.socket:
    """Open a raw connection that waits to be accepted, because the event loop makes no turn meanwhile."""
    raw = socket.create_connection((LOCAL, port))
    raw.setblocking(False)
    return raw


async def hung_up_on(raw: socket.socket) -> bool:
    """Wait until the other side ends a raw connection; return True."""
    with suppress(ConnectionError):
        while await asyncio.get_running_loop().sock_recv(raw, 1 << 16):
            pass
    raw.close()
    return True


async def connected(port: int, host: str = LOCAL) -> socket.socket:
    """Open a raw connection from an address of this host."""
    raw = socket.socket()
    raw.setblocking(False)
    raw.bind((host, 0))
    await asyncio.get_running_loop().sock_connect(raw, (LOCAL, port))
    return raw
