"""The source's data stream over TCP: one server for all who join, and the joiner's side.

A joiner that does not keep up is dropped, never waited for (P-011): it joins again and recovers from the stores.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from stablecast.transports.lbttcp import Run, StreamDecoder
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes waiting for one slow joiner; beyond that it is dropped."""

Item = Run | Message


class Subscriber(asyncio.Protocol):
    """One joiner, seen from the source."""

    def __init__(self, server: "StreamServer") -> None:
        """A connection to `server`."""
        self._server = server
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Greet, then it hears everything."""
        self.transport = transport
        no_delay(transport)
        transport.set_write_buffer_limits(MAX_QUEUED_BYTES)
        transport.write(self._server.greet())
        self._server.subscribers.append(self)

    def data_received(self, data: bytes) -> None:
        """Joiners say nothing on the stream; what they ask for goes to the request port."""

    def connection_lost(self, exc: Exception | None) -> None:
        """It left."""
        self.transport = None
        if self in self._server.subscribers:
            self._server.subscribers.remove(self)


class StreamServer:
    """Everybody who joined a source's stream."""

    def __init__(self, listening: socket.socket, greet: Callable[[], bytes]) -> None:
        """Serve joiners on a listening socket; `greet` says what each hears first."""
        self._listening = listening
        self.greet = greet
        self.subscribers: list[Subscriber] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Accept joiners."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Subscriber(self), sock=self._listening)

    def write(self, block: bytes) -> None:
        """Send to everybody who keeps up."""
        for subscriber in tuple(self.subscribers):
            transport = subscriber.transport
            if transport is None:
                continue
            transport.write(block)
            if transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
                transport.abort()

    def backlog(self) -> int:
        """Bytes waiting for the slowest joiner."""
        waiting = (s.transport.get_write_buffer_size() for s in self.subscribers if s.transport is not None)
        return max(waiting, default=0)

    async def close(self) -> None:
        """Stop accepting, end every stream after what was written."""
        if self._server is not None:
            self._server.close()
        for subscriber in tuple(self.subscribers):
            if subscriber.transport is not None:
                subscriber.transport.close()
        self.subscribers.clear()
        if self._server is not None:
            await self._server.wait_closed()


class StreamReader(asyncio.Protocol):
    """Decodes what arrives on a connection and hands it over; used for streams and for request ports.

    `on_items` gets the runs and messages of one read, in order. `on_end` is called once, with what was wrong or None.
    """

    def __init__(self, on_items: Callable[[list[Item]], None], on_end: Callable[[str | None], None]) -> None:
        """A connection that is not made yet."""
        self._on_items = on_items
        self._on_end = on_end
        self._decoder = StreamDecoder()
        self._error: str | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Keep the transport, for pausing and closing."""
        self.transport = transport
        no_delay(transport)

    def data_received(self, data: bytes) -> None:
        """Bytes that are not the protocol end the connection; they never end the program."""
        try:
            items = self._decoder.feed(data)
        except WireError as error:
            self._error = str(error)
            if self.transport is not None:
                self.transport.abort()
            return
        if items:
            self._on_items(items)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side left, or talked nonsense."""
        self.transport = None
        self._on_end(self._error)

    def pause(self) -> None:
        """Read no more for now."""
        if self.transport is not None and self.transport.is_reading():
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self.transport is not None and not self.transport.is_reading():
            self.transport.resume_reading()

    def close(self) -> None:
        """Leave."""
        if self.transport is not None:
            self.transport.abort()


def no_delay(transport: asyncio.Transport) -> None:
    """Small writes go at once; batching is ours."""
    connected: Any = transport.get_extra_info("socket")
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
