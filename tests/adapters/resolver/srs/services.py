"""Services and contexts of one event loop on loopback, closed with the test."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.resolver import Listeners
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.resolver.srs_resolver import SrsResolver
from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.resolution.srs.settings import ClientConfig
from stablecast.transports.resolution.udp.inputs import AddSource

LOCAL = "127.0.0.1"
QUICK = ClientConfig(keepalive_ns=200 * MILLISECOND, retry_min_ns=10 * MILLISECOND, retry_max_ns=50 * MILLISECOND)
"""Tests of broken connections need not wait long."""

RECORD = named(SourceRecord("127.0.0.1:14371", 7, 1, "127.0.0.1:14391", persistent=True, instance=b"instance"))
Told = asyncio.Queue[tuple[str, SourceRecord]]


@attrs.define
class Party:
    """A context and what it was told."""

    resolver: SrsResolver
    found: Told = attrs.field(factory=asyncio.Queue)
    gone: Told = attrs.field(factory=asyncio.Queue)
    services: asyncio.Queue[tuple[str, bool, str]] = attrs.field(factory=asyncio.Queue)

    def announce(self, topic: str = "orders", index: int = 1) -> None:
        self.resolver.add_source(
            AddSource(topic, RECORD.address, RECORD.session_id, index, RECORD.request_address, persistent=True)
        )


@attrs.define
class Place:
    """Services and contexts; `log` holds the services' lines."""

    stack: AsyncExitStack
    log: list[str] = attrs.field(factory=list)

    async def service(self, port: int = 0, **config: Any) -> SrsDaemon:
        daemon = await SrsDaemon.start(SrsConfig(LOCAL, port, **config), self.log.append)
        self.stack.push_async_callback(daemon.close)
        return daemon

    async def context(self, *services: str, instance: bytes = b"instance") -> Party:
        found: Told = asyncio.Queue()
        gone: Told = asyncio.Queue()
        changes: asyncio.Queue[tuple[str, bool, str]] = asyncio.Queue()
        resolver = await SrsResolver.start(
            LOCAL,
            services,
            Listeners(
                lambda topic, record: found.put_nowait((topic, record)),
                lambda topic, record: gone.put_nowait((topic, record)),
                service=lambda address, up, reason: changes.put_nowait((address, up, reason)),
            ),
            instance=instance,
            config=QUICK,
        )
        self.stack.push_async_callback(resolver.close)
        return Party(resolver, found, gone, changes)


@asynccontextmanager
async def place() -> AsyncIterator[Place]:
    """Provide a place without services and contexts."""
    async with AsyncExitStack() as stack:
        yield Place(stack)


async def raw(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.socket()
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
    return connection
