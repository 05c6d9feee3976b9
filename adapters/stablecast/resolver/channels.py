"""TCP connections by number: made, written to, and cut, for a machine that says which."""

import asyncio
import socket
from collections.abc import Callable

from stablecast.runtime import tls
from stablecast.runtime.address import join
from stablecast.runtime.keepalive import keep_alive
from stablecast.transports.resolution.srs.events import BytesReceived, ConnectionClosed, ConnectionOpened

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes waiting for one peer; beyond that its connection is broken."""

Happening = ConnectionOpened | BytesReceived | ConnectionClosed


class Channel(asyncio.Protocol):
    """One connection."""

    def __init__(self, channels: "Channels", number: int) -> None:
        """A connection of `channels` that is not made yet."""
        self._channels = channels
        self._number = number
        self._given_up = False

    def give_up(self) -> None:
        """Ignore a connection that is made too late: uvloop reports it, and never its end (`connection_pool`)."""
        self._given_up = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """It is there."""
        if self._given_up:
            transport.abort()
            return
        keep_alive(transport)
        self._channels.on_made(self._number, transport)

    def data_received(self, data: bytes) -> None:
        """The peer said something."""
        self._channels.tell(BytesReceived(self._number, data))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if self._given_up:
            return
        self._channels.on_lost(self._number, "the connection broke" if exc else "the peer closed the connection")


class Channels:
    """The connections of one machine, which is told by `tell` what happens on those that it did not cut."""

    def __init__(self, interface: str, tell: Callable[[Happening], None]) -> None:
        """Connections from the address `interface`."""
        self._interface = interface
        self._tell = tell
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._open: dict[int, asyncio.Transport] = {}
        self._cut: set[int] = set()
        self._closing = False
        self._empty = asyncio.Event()
        self._empty.set()

    def connect(self, number: int, address: str) -> None:
        """Connect to `host:port`; names are looked up each time."""
        task = asyncio.get_running_loop().create_task(self._connect(number, address))
        self._connecting[number] = task
        task.add_done_callback(lambda _: self._connecting.pop(number, None))

    def write(self, number: int, data: bytes) -> None:
        """Send, unless the connection is over; too much in its queue breaks it."""
        transport = self._open.get(number)
        if transport is None:
            return
        transport.write(data)  # The machine learns of what this raises as of a connection that broke.
        if transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
            transport.abort()

    def cut(self, number: int) -> None:
        """Break a connection, or give up making it; nothing is told of it any more."""
        task, transport = self._connecting.get(number), self._open.get(number)
        if task is not None:
            task.cancel()
        if transport is not None:
            self._cut.add(number)
            transport.abort()

    async def close(self) -> None:
        """Cut everything, and wait until nothing is left running."""
        self._closing = True
        tasks = list(self._connecting.values())
        for number in (*self._connecting, *self._open):
            self.cut(number)
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._empty.wait()

    def tell(self, happening: Happening) -> None:
        """Tell the machine, unless it does not want to know."""
        if not self._closing and happening.connection not in self._cut:
            self._tell(happening)

    def on_made(self, number: int, transport: asyncio.Transport) -> None:
        """A connection is there."""
        self._open[number] = transport
        self._empty.clear()
        self.tell(ConnectionOpened(number, join(*transport.get_extra_info("sockname"))))

    def on_lost(self, number: int, reason: str) -> None:
        """A connection is over."""
        del self._open[number]
        self.tell(ConnectionClosed(number, reason))
        self._cut.discard(number)
        if not self._open:
            self._empty.set()

    async def _connect(self, number: int, address: str) -> None:
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        channel = Channel(self, number)
        try:
            await loop.create_connection(
                lambda: channel,
                host,
                int(port),
                family=socket.AF_INET,
                local_addr=(self._interface, 0),
                ssl=tls.client(),
                ssl_handshake_timeout=tls.handshake(),
            )
        except BaseException as error:
            channel.give_up()
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            if number in self._open:  # Made, and broken or cancelled at once.
                self.on_lost(number, reason)
            elif isinstance(error, Exception):
                self.tell(ConnectionClosed(number, reason))
            if not isinstance(error, Exception):
                raise
