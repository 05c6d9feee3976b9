"""Stores, a relay and contexts of one event loop on loopback, closed with the test; and what they leave behind."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from stablecast.client import Context
from stablecast.config.transport_options import TransportConfig
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.resolver import RelayDaemon
from stablecast.runtime import ports
from stablecast.store.store import Store, StoreSettings

LOCAL = "127.0.0.1"


class Events(list[Event]):
    """An `on_event` callback that remembers; `await events.first(kind)` waits for one of a kind."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.append(event)
        self._changed.set()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]

    async def first(self, kind: type[Any], count: int = 1) -> Any:
        """The `count`th event of a kind, as soon as there is one."""
        while len(self.of(kind)) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.of(kind)[count - 1]


KEPT = RepositoryConfig()
"""What the stores of a network keep unless told otherwise."""


@attrs.define
class Network:
    """What was started, by name."""

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
        """Start a store (again, with the disk it left); returns its address. `changes` are to its own configuration."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        kept = attrs.evolve(KEPT, **repository)
        settings = attrs.evolve(StoreConfig(listen, seed=len(name), repository=kept), **changes or {})
        how = transports or TransportConfig()
        store = Store(StoreSettings(listen, directory, settings, new=True, transports=how))
        await store.start()
        self.stores[name] = store
        return store.address

    async def stop(self, name: str = "store") -> str:
        """Stop a store; returns its address, for a restart."""
        store = self.stores.pop(name)
        await store.stop()
        return store.address

    async def context(self, **arguments: Any) -> Context:
        """An open context that uses the network's relay."""
        if not self.relays:
            self.relays.append(await RelayDaemon.start(LOCAL, 0))
            self.stack.push_async_callback(self.relays[0].close)
        return await self.stack.enter_async_context(Context(resolver=[self.relays[0].address], **arguments))

    async def close(self) -> None:
        """Stop the stores."""
        for name in list(self.stores):
            await self.stop(name)


@asynccontextmanager
async def network(directory: Path) -> AsyncIterator[Network]:
    """A network of nothing yet."""
    async with AsyncExitStack() as stack:
        started = Network(stack, directory)
        stack.push_async_callback(started.close)
        yield started


async def drop(context: Context) -> None:
    """End a context as a crash would: nobody says a last word, the kernel closes the sockets."""
    for receiver in list(context._receivers.values()):
        for session in receiver._sessions.values():
            session._driver.close()
    for source in list(context._sources.values()):
        source._driver.close()
    context.pool.send = lambda *_: None  # type: ignore[method-assign]
    await context.close()


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds that no event tells of."""
    while not condition():  # noqa: ASYNC110  # a white-box condition
        await asyncio.sleep(0.001)


def unused_port() -> int:
    """A port at which nobody listens."""
    with ports.listen(LOCAL, 0, "port") as listening:
        port: int = listening.getsockname()[1]
    return port


def sockets() -> set[str]:
    """The open TCP and UDP sockets of this process."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue  # The one that listed the folder.
        if target.startswith("socket:"):
            found.add(target)
    return found


def others() -> set["asyncio.Task[Any]"]:
    """Every task but this one."""
    return asyncio.all_tasks() - {asyncio.current_task()}


def knocking(port: int) -> socket.socket:
    """A raw connection that waits to be accepted: the event loop has made no turn."""
    raw = socket.create_connection((LOCAL, port))
    raw.setblocking(False)
    return raw


async def hung_up_on(raw: socket.socket) -> bool:
    """Waits until the other side has ended a raw connection, whatever it said before; always true."""
    with contextlib.suppress(ConnectionError):
        while await asyncio.get_running_loop().sock_recv(raw, 1 << 16):
            pass
    raw.close()
    return True


async def connected(port: int) -> socket.socket:
    """A raw connection."""
    raw = socket.socket()
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, (LOCAL, port))
    return raw
