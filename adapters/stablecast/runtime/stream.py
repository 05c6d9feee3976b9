"""The source's data stream over TCP: one server for all who join, and the joiner's side.

A joiner that does not keep up is dropped, never waited for (P-011): it joins again and recovers from the stores. Or the
source is held until the slowest has room, where that is asked for (transport_tcp_multiple_receiver_behavior normal).

Who joined last is written to at once, the others at the end of the loop's turn, with all that was said in it. Stores
join when the source registers, receivers as a rule later. Where cores are few, a store that is woken first takes the
core that the receiver needs, or that of the source, which has more to say; and what it reads at once it flushes once.
"""

import asyncio
import socket
from collections.abc import Callable

from stablecast.runtime import ports, tls
from stablecast.runtime.effect_execution import report
from stablecast.runtime.keepalive import keep_alive
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes waiting for one slow joiner, unless told otherwise; beyond that it is dropped."""

OVERHANG = 64 * 1024 * 1024
"""Bytes that may wait beyond that where the source is held: what it says while it sends nothing."""

TURN_BYTES = 32 * 1024
"""Bytes that wait for the end of a turn; from so many on everybody is written to at once."""

MAX_JOINERS = 4096
"""Joiners of one stream; one more is hung up on."""

CLOSE_SECONDS = 2.0
"""How long closing waits for joiners to take what was written."""

Item = Run | Message


class Subscriber(asyncio.Protocol):
    """One joiner, seen from the source."""

    def __init__(self, server: "StreamServer") -> None:
        """A connection to `server`."""
        self._server = server
        self.transport: asyncio.Transport | None = None
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Greet, then it hears everything."""
        self.transport = transport
        keep_alive(transport)
        if self._server.full:
            transport.abort()
            return
        if self._server.hold is not None:
            transport.set_write_buffer_limits(high=self._server.maximum)
        transport.write(self._server.greet())
        self._server.add(self)

    def pause_writing(self) -> None:
        """It does not keep up."""
        self._server.on_slow(self, True)

    def resume_writing(self) -> None:
        """It does again."""
        self._server.on_slow(self, False)

    def data_received(self, data: bytes) -> None:
        """Joiners say nothing on the stream; what they ask for goes to the request port."""

    def connection_lost(self, exc: Exception | None) -> None:
        """It left."""
        self.transport = None
        self.ended.set()
        self._server.on_slow(self, False)
        self._server.remove(self)


class StreamServer:
    """Everybody who joined a source's stream, the last first."""

    def __init__(
        self,
        listening: socket.socket,
        greet: Callable[[], bytes],
        maximum: int = MAX_QUEUED_BYTES,
        hold: Callable[[bool], None] | None = None,
    ) -> None:
        """Serve joiners on a listening socket, which is ours from now on; `greet` says what each hears first.

        `maximum` bytes wait for a slow joiner; `hold` is told then whether the source must wait. None: the joiner is
        dropped.
        """
        self._listening = listening
        self.greet = greet
        self.maximum = maximum
        self.hold = hold
        self._slow: set[Subscriber] = set()
        self.subscribers: list[Subscriber] = []
        self._server: asyncio.Server | None = None
        self._loop = asyncio.get_running_loop()
        self._turn: list[bytes] = []
        self._turn_bytes = 0
        self._closed = False
        self.dropped = 0

    async def start(self) -> None:
        """Accept joiners."""
        self._server = await self._loop.create_server(
            lambda: Subscriber(self),
            sock=self._listening,
            start_serving=False,
            ssl=tls.server(),
            ssl_handshake_timeout=tls.handshake(),
        )
        await self._server.start_serving()

    @property
    def full(self) -> bool:
        """Whether no more joiners are taken."""
        return self._closed or len(self.subscribers) >= MAX_JOINERS

    def add(self, subscriber: Subscriber) -> None:
        """One joined: it hears what comes from now on."""
        self._end_turn()
        self.subscribers.insert(0, subscriber)

    def remove(self, subscriber: Subscriber) -> None:
        """One left."""
        self._end_turn()
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)

    def write(self, block: bytes) -> None:
        """Send to everybody who keeps up."""
        if not self.subscribers:
            return
        self._put(self.subscribers[0], [block])
        if len(self.subscribers) > 1:
            if not self._turn:
                self._loop.call_soon(self._end_turn)
            self._turn.append(block)
            self._turn_bytes += len(block)
            if self._turn_bytes >= TURN_BYTES:
                self._end_turn()

    def _end_turn(self) -> None:
        """Write to those who did not join last what they have not got yet."""
        blocks, self._turn, self._turn_bytes = self._turn, [], 0
        if blocks:
            for subscriber in self.subscribers[1:]:
                self._put(subscriber, blocks)

    def _put(self, subscriber: Subscriber, blocks: list[bytes]) -> None:
        transport = subscriber.transport
        if transport is None:
            return
        try:
            transport.writelines(blocks)
        except Exception as error:  # noqa: BLE001 - one joiner's connection must not cost the others a block
            report("a joiner is dropped because its connection failed", error)
            self.dropped += 1
            transport.abort()
            return
        if transport.get_write_buffer_size() > (self.maximum if self.hold is None else self.maximum + OVERHANG):
            self.dropped += 1
            transport.abort()

    def on_slow(self, subscriber: Subscriber, slow: bool) -> None:
        """A joiner does not keep up, or does again."""
        before = bool(self._slow)
        (self._slow.add if slow else self._slow.discard)(subscriber)
        if self.hold is not None and bool(self._slow) != before:
            self.hold(slow)

    def statistics(self) -> dict[str, int]:
        """Who joined, what waits for them in all, and how many were dropped for being slow."""
        waiting = [one.transport.get_write_buffer_size() for one in self.subscribers if one.transport is not None]
        return {"num_clients": len(waiting), "bytes_buffered": sum(waiting), "clients_dropped": self.dropped}

    async def close(self) -> None:
        """Stop accepting, end every stream after what was written; who does not take that in time is hung up on."""
        self._closed = True
        if self._server is None:
            self._listening.close()
            return
        self._end_turn()
        leaving = tuple(self.subscribers)
        try:
            await ports.close(self._server)
            for subscriber in leaving:
                if subscriber.transport is not None:
                    subscriber.transport.close()
            async with asyncio.timeout(CLOSE_SECONDS):
                for subscriber in leaving:
                    await subscriber.ended.wait()
        except TimeoutError:
            pass  # They are aborted below, like those that a cancelled close leaves behind.
        finally:
            for subscriber in leaving:
                if subscriber.transport is not None:
                    subscriber.transport.abort()
        for subscriber in leaving:
            await subscriber.ended.wait()
        await self._server.wait_closed()


class StreamReader(asyncio.Protocol):
    """Decodes what arrives on a connection and hands it over; used for streams and for request ports.

    `on_items` gets the runs and messages of one read, in order; it may be changed. `ended` is set with the end of the
    connection, `error` says what was wrong if it was us who ended it.
    """

    def __init__(self, on_items: Callable[[list[Item]], None], series: bool = False) -> None:
        """A connection that is not made yet; retransmissions that come on it may be put into `Series`."""
        self.on_items = on_items
        self._decoder = StreamDecoder(series)
        self._closing = False
        self._transport: asyncio.Transport | None = None
        self.error = ""
        self.bytes_rcved = self.messages_rcved = 0
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Keep the transport, for pausing and closing."""
        self._transport = transport
        keep_alive(transport)
        if self._closing:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes that are not the protocol end the connection; they never end the program."""
        self.bytes_rcved += len(data)
        try:
            items = self._decoder.feed(data)
        except WireError as error:
            self.error = str(error)
            self.abort()
            return
        for item in items:
            self.messages_rcved += item.count if isinstance(item, Run) else 1
        if items and not self._closing:
            self.on_items(items)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side left, or we did."""
        self._transport = None
        self.ended.set()

    def pause(self) -> None:
        """Read no more for now."""
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and not self._transport.is_reading():
            self._transport.resume_reading()

    def abort(self) -> None:
        """Leave; nothing is handed over any more."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Leave, and wait until the connection is gone."""
        self.abort()
        if self._transport is not None:
            await self.ended.wait()
