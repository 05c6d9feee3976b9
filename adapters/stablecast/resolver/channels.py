"""Outgoing TCP connections by number: a machine decides which are made, written to and cut."""

import asyncio
import socket
from collections.abc import Callable, Mapping

from stablecast.runtime import tls
from stablecast.runtime.address import is_ip6, join, split_service
from stablecast.runtime.ports import prepare
from stablecast.runtime.unicast import NO_ENDS, LocalEnd
from stablecast.text import refusal
from stablecast.transports.resolution.srs.events import BytesReceived, ConnectionClosed, ConnectionOpened

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes that may wait for one peer; beyond that its connection is aborted."""

Happening = ConnectionOpened | BytesReceived | ConnectionClosed


class Channel(asyncio.Protocol):
    def __init__(self, channels: "Channels", number: int) -> None:
        self._channels = channels
        self._number = number
        self._given_up = False

    def give_up(self) -> None:
        """Ignore a connection that is made too late: uvloop reports it, but never its end (`connection_pool`)."""
        self._given_up = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Report the connection, unless it was given up."""
        if self._given_up:
            transport.abort()
            return
        prepare(transport)
        self._channels.on_made(self._number, transport)

    def data_received(self, data: bytes) -> None:
        self._channels.report(BytesReceived(self._number, data))

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end, unless the connection was given up."""
        if self._given_up:
            return
        why = tls.cause(exc) or ("the connection broke" if exc else "the peer closed the connection")
        self._channels.on_lost(self._number, why)


class Channels:
    """The connections of one machine; `on_event` gets the events of those that the machine did not cut."""

    def __init__(
        self, interface: str, on_event: Callable[[Happening], None], ends: Mapping[str, LocalEnd] = NO_ENDS
    ) -> None:
        """Connect from the address `interface`, or from the local end of a peer."""
        self._interface = interface
        self._ends = ends
        self._on_event = on_event
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._open: dict[int, asyncio.Transport] = {}
        self._cut: set[int] = set()
        self._closing = False
        self._empty = asyncio.Event()
        self._empty.set()

    def move(self, interface: str) -> None:
        """Connect from another address of this host from now on, and end the connections of the old one."""
        self._interface = interface
        for transport in tuple(self._open.values()):
            transport.abort()

    def connect(self, number: int, address: str) -> None:
        """Begin to connect to `host:port`; a name is looked up each time."""
        task = asyncio.get_running_loop().create_task(self._connect(number, address))
        self._connecting[number] = task
        task.add_done_callback(lambda _: self._connecting.pop(number, None))

    def write(self, number: int, data: bytes) -> None:
        """Send, unless the connection is over; abort it if too many bytes wait."""
        transport = self._open.get(number)
        if transport is None or transport.is_closing():
            return
        transport.write(data)  # The caller feeds an exception to the machine as a broken connection.
        if transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
            transport.abort()

    def cut(self, number: int) -> None:
        """Abort a connection or its attempt; no event of it is reported afterwards."""
        task, transport = self._connecting.get(number), self._open.get(number)
        if task is not None:
            task.cancel()
        if transport is not None:
            self._cut.add(number)
            transport.abort()

    async def close(self) -> None:
        """Cut all connections, and wait until their tasks and sockets have ended."""
        self._closing = True
        tasks = list(self._connecting.values())
        for number in (*self._connecting, *self._open):
            self.cut(number)
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._empty.wait()

    def report(self, event: Happening) -> None:
        """Report an event, unless its connection was cut or all are closing."""
        if not self._closing and event.connection not in self._cut:
            self._on_event(event)

    def on_made(self, number: int, transport: asyncio.Transport) -> None:
        self._open[number] = transport
        self._empty.clear()
        host, port = transport.get_extra_info("sockname")[:2]
        # The service is told an IPv4 address, also by a context that reached it over IPv6.
        self.report(ConnectionOpened(number, join(self._interface if is_ip6(host) else host, port)))

    def on_lost(self, number: int, reason: str) -> None:
        """Forget a connection that is over, and report its end."""
        del self._open[number]
        self.report(ConnectionClosed(number, reason))
        self._cut.discard(number)
        if not self._open:
            self._empty.set()

    async def _connect(self, number: int, address: str) -> None:
        host, port = split_service(address)
        over_ip6 = is_ip6(host)
        loop = asyncio.get_running_loop()
        channel = Channel(self, number)
        end = self._ends.get(address, LocalEnd())
        try:
            await loop.create_connection(
                lambda: channel,
                host,
                port,
                family=socket.AF_INET6 if over_ip6 else socket.AF_INET,
                local_addr=None if over_ip6 else (end.address(self._interface), end.port),
                ssl=tls.client(),
                ssl_handshake_timeout=tls.handshake(),
            )
        except BaseException as error:
            channel.give_up()
            reason = tls.cause(error) or refusal(error)
            if number in self._open:  # Made, and broken or cancelled at once.
                self.on_lost(number, reason)
            elif isinstance(error, Exception):
                self.report(ConnectionClosed(number, reason))
            if not isinstance(error, Exception):
                raise
