"""A source's data stream over TCP, from both sides: one server for all joiners, and the reader of a joiner.

The server drops a joiner that does not keep up and never waits for it (P-011); the joiner joins again and recovers from
the stores. With transport_tcp_multiple_receiver_behavior `normal` the server holds the source instead, until the
slowest joiner has room.

The server writes to the last joiner at once, and to the others at the end of the loop's turn, all blocks together.
Stores join when the source registers, and receivers usually join later. On few cores, a store that wakes first would
occupy the core that the receiver or the source needs. A store that reads several blocks at once also flushes once.

A reader joins, and joins again after a broken connection. The greeting shows whether the port still belongs to the
expected life of the source, because another life may listen there after a restart. A refused connection, or the
greeting of another session, means that the life is over. Every other end concerns only the connection: the joiner joins
again, at most once in `RETRY_SECONDS`.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import attrs

from stablecast.runtime import machine, ports, tls, tls_server
from stablecast.runtime.address import parse_place
from stablecast.runtime.driver import report
from stablecast.runtime.join_attempts import Place, join_attempts
from stablecast.runtime.ports import prepare
from stablecast.text.scarcity import is_scarce
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message

Admits = Callable[[asyncio.BaseTransport], bool]
"""Returns whether the process at the other end of a connection may be there (`Origins.has_right`)."""

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes that may wait for one slow joiner by default; beyond that it is dropped."""

GIVEN_BYTES = 256 * 1024
"""Bytes that the event loop is given for a joiner that does not read. It would look at all of them in each turn, and a
crowd of such joiners took the source's time from those who read. The rest costs a place in a list."""

OVERHANG = 64 * 1024 * 1024
"""Bytes that may wait beyond that while the source is held, for its control messages."""

TURN_BYTES = 32 * 1024
"""Bytes that wait for the end of a turn; with more, all joiners are written to at once."""

MAX_JOINERS = 4096
"""Joiners of one stream; one more is disconnected."""

CLOSE_SECONDS = 2.0
"""Time that closing waits for joiners to read the written bytes."""

Item = Run | Message

logger = logging.getLogger("stablecast")


class Subscriber(asyncio.Protocol):
    """The connection of one joiner, on the source's side."""

    def __init__(self, server: "StreamServer") -> None:
        self._server = server
        self.transport: asyncio.Transport | None = None
        self.host = ""
        self.ended = asyncio.Event()
        self.keeps = False
        self._kept: list[bytes] = []
        self._kept_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Greet the joiner and add it to the server, unless the server is full."""
        self.transport = transport
        prepare(transport)
        self.host = (transport.get_extra_info("peername") or ("",))[0]
        if (self._server.full or not ports.has_room()) and not self._server.make_room(self.host):
            transport.abort()
            return
        if not self._server.admits(transport):
            transport.abort()
            return
        held = self._server.hold is not None
        transport.set_write_buffer_limits(high=self._server.maximum if held else GIVEN_BYTES)
        transport.write(self._server.greet())  # Before `add`: no block may come before the greeting.
        self._server.add(self)

    @property
    def waiting(self) -> int:
        """The bytes that wait for the joiner."""
        return self._kept_bytes + (0 if self.transport is None else self.transport.get_write_buffer_size())

    def keep(self, blocks: list[bytes], size: int) -> bool:
        """Keep blocks, `size` bytes in all, for a joiner that does not read. Return False if that is too much."""
        self._kept += blocks
        self._kept_bytes += size
        return self._kept_bytes <= self._server.maximum

    def write_kept(self) -> None:
        """Write what was kept."""
        blocks, self._kept, self._kept_bytes = self._kept, [], 0
        if blocks and self.transport is not None:
            self.transport.writelines(blocks)

    def pause_writing(self) -> None:
        """Report that the joiner does not keep up."""
        self.keeps = self._server.hold is None
        self._server.on_slow(self, True)

    def resume_writing(self) -> None:
        """Report that the joiner keeps up again."""
        self.keeps = False
        self.write_kept()
        self._server.on_slow(self, False)

    def data_received(self, data: bytes) -> None:
        """Ignore the bytes: joiners send requests to the request port, not here."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the joiner from the server."""
        self.transport = None
        self.keeps, self._kept, self._kept_bytes = False, [], 0
        self.ended.set()
        self._server.on_slow(self, False)
        self._server.remove(self)


@attrs.define(eq=False, slots=False)  # a test replaces `write`
class StreamServer:
    """The server of a source's stream on a listening socket that it owns.

    `subscribers` are its joiners, the last one first; `greet` returns the first bytes for each of them. A joiner is
    slow when `maximum` bytes wait for it. `hold` gets whether the source must wait for slow joiners; without `hold`
    they are dropped. `admits` judges joiners. `met` is True once there was a joiner.
    """

    _listening: machine.Socket
    greet: Callable[[], bytes]
    maximum: int = MAX_QUEUED_BYTES
    hold: Callable[[bool], None] | None = None
    admits: Admits = lambda _: True
    _slow: set[Subscriber] = attrs.field(factory=set)
    subscribers: list[Subscriber] = attrs.field(factory=list)
    _server: ports.Server | None = None
    _loop: asyncio.AbstractEventLoop = attrs.field(factory=asyncio.get_running_loop)
    _turn: list[bytes] = attrs.field(factory=list)
    _turn_bytes: int = 0
    _closed: bool = False
    dropped: int = 0
    met: bool = False

    async def start(self) -> None:
        """Begin to accept joiners on the listening socket."""
        self._server = await tls_server.server(lambda: Subscriber(self), self._listening)
        await self._server.start_serving()

    async def move(self, listening: machine.Socket) -> None:
        """Listen at another socket, because the host has another address; the joiners of the old one join again."""
        left, self._listening = self._server, listening
        await self.start()
        if left is not None:
            await ports.close(left)
        for subscriber in tuple(self.subscribers):
            if subscriber.transport is not None:
                subscriber.transport.abort()

    @property
    def full(self) -> bool:
        """Return whether the server accepts no more joiners."""
        return self._closed or len(self.subscribers) >= MAX_JOINERS

    def make_room(self, newcomer: str) -> bool:
        """End the last joiner of a host that has most of the places, for one of another host; return False without."""
        crowd = None if self._closed else ports.crowding_host((one.host for one in self.subscribers), newcomer)
        for one in self.subscribers if crowd is not None else ():
            if one.host == crowd and one.transport is not None:
                one.transport.abort()
                self.remove(one)
                return True
        return False

    def add(self, subscriber: Subscriber) -> None:
        """Add a joiner, which gets all blocks from now on."""
        self._end_turn()  # The blocks of this turn are older than the joiner's greeting.
        self.subscribers.insert(0, subscriber)
        self.met = True

    def remove(self, subscriber: Subscriber) -> None:
        """Remove a joiner, after the blocks of the turn."""
        self._end_turn()
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)

    def write(self, block: bytes) -> None:
        if not self.subscribers:
            return
        self._put(self.subscribers[0], [block], len(block))
        if len(self.subscribers) > 1:
            if not self._turn:
                self._loop.call_soon(self._end_turn)
            self._turn.append(block)
            self._turn_bytes += len(block)
            if self._turn_bytes >= TURN_BYTES:
                self._end_turn()

    def _end_turn(self) -> None:
        """Write the blocks of the turn to all joiners but the last, which has them already."""
        blocks, size, self._turn, self._turn_bytes = self._turn, self._turn_bytes, [], 0
        if blocks:
            for subscriber in self.subscribers[1:]:
                self._put(subscriber, blocks, size)

    def _put(self, subscriber: Subscriber, blocks: list[bytes], size: int) -> None:
        if subscriber.keeps and subscriber.keep(blocks, size):
            return
        transport = subscriber.transport
        if transport is None or transport.is_closing():
            return
        try:
            if not subscriber.keeps:
                transport.writelines(blocks)
        except Exception as error:  # noqa: BLE001 - the other joiners must still get the block
            report("a joiner is dropped because its connection failed", error)
            self.dropped += 1
            transport.abort()
            return
        if subscriber.waiting > (self.maximum if self.hold is None else self.maximum + OVERHANG):
            self.dropped += 1
            transport.abort()

    def on_slow(self, subscriber: Subscriber, slow: bool) -> None:
        """Note that a joiner is slow, or no longer; hold or release the source if that changes the answer."""
        before = bool(self._slow)
        (self._slow.add if slow else self._slow.discard)(subscriber)
        if self.hold is not None and bool(self._slow) != before:
            self.hold(slow)

    def statistics(self) -> dict[str, int]:
        """Return the number of joiners, the bytes that wait for them, and the number of dropped joiners."""
        waiting = [one.waiting for one in self.subscribers if one.transport is not None]
        return {"num_clients": len(waiting), "bytes_buffered": sum(waiting), "clients_dropped": self.dropped}

    async def close(self) -> None:
        """Stop accepting, and end each stream after its written bytes, or after `CLOSE_SECONDS` without them."""
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
                    subscriber.write_kept()
                    subscriber.transport.close()
            async with asyncio.timeout(CLOSE_SECONDS):
                for subscriber in leaving:
                    await subscriber.ended.wait()
        except TimeoutError:
            pass  # The rest is aborted below, also when this close is cancelled.
        finally:
            for subscriber in leaving:
                if subscriber.transport is not None:
                    subscriber.transport.abort()
        for subscriber in leaving:
            await subscriber.ended.wait()
        await self._server.wait_closed()


class StreamReader(asyncio.Protocol):
    """Decode the bytes of a connection and hand over its items; streams and request ports use it.

    `on_items` gets the runs and messages of one read, in order; it may be replaced. `ended` is set at the end of the
    connection; `error` has the reason if this side ended it because of malformed bytes. `barred`: the peer may not be
    there.
    """

    def __init__(
        self, on_items: Callable[[list[Item]], None], series: bool = False, admits: Admits = lambda _: True
    ) -> None:
        """Prepare a connection; with `series` its retransmissions are decoded as `Series`. `admits` judges the peer."""
        self.on_items = on_items
        self._admits = admits
        self._decoder = StreamDecoder(series)
        self._closing = self.barred = False
        self._transport: asyncio.Transport | None = None
        self.error = ""
        self.failure: Exception | None = None
        self.bytes_rcved = self.messages_rcved = 0
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Keep the transport, which pausing and closing need."""
        self._transport = transport
        prepare(transport)
        self.barred = not self._admits(transport)
        if self._closing or self.barred:
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Decode bytes and hand over their items; malformed bytes end the connection, never the program."""
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
        self.failure = exc
        self._transport = None
        self.ended.set()

    def pause(self) -> None:
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_reading():
            self._transport.resume_reading()

    def abort(self) -> None:
        """End the connection at once; nothing is handed over afterwards."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """End the connection, and wait until it has ended."""
        self.abort()
        if self._transport is not None:
            await self.ended.wait()


UNGREETED = "It ends connections without a greeting: it may use TLS where this process does not"
"""Words for a source that accepts a joiner and says nothing to it, without TLS here."""

UNWANTED = "It ends connections without a greeting: its policy may not let this process join"
"""The same with TLS."""

UNGREETED_ATTEMPTS = 3
"""Attempts in a row without a greeting before it is reported: a source that dies between its accept and its greeting
looks the same once, and its port refuses the next attempt."""

RETRY_SECONDS = 0.2
"""Time from one attempt to join to the next."""

JOIN_SECONDS = 5.0
"""Time limit of one attempt. After a long partition the kernel would repeat its request only once a minute."""


@attrs.define(eq=False)
class StreamJoiner:
    """One joined stream. `on_items` gets the session ID and the items, `on_end(gone)` each end of the connection.

    A `session_id` of None accepts any life at `transport`. The items begin after the greeting. After `on_end(True)` the
    joiner has given up; otherwise it joins again by itself, and one that is `patient` also at a host that does not
    answer. `admits` judges who sends the stream. All callbacks may call the joiner.
    """

    transport: str
    _expected: int | None = attrs.field(alias="session_id")
    _on_items: Callable[[int, list[Item]], None]
    _on_end: Callable[[bool], None]
    _admits: Admits = lambda _: True
    _patient: bool = attrs.field(default=True, kw_only=True)
    _reader: StreamReader | None = None
    _over: bool = False
    _paused: bool = False
    _bytes: int = 0
    _messages: int = 0
    _reported: str = ""
    _ungreeted: int = 0
    _failed: bool = False
    _place: Place | None = None
    _task: "asyncio.Task[None]" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def claim(self, topic: int) -> None:
        """Do nothing: a stream has one topic."""

    def pause(self) -> None:
        self._paused = True
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        self._paused = False
        if self._reader is not None:
            self._reader.resume()

    def statistics(self) -> dict[str, int]:
        """Return the bytes and messages received since the joiner was created."""
        # The reader of an earlier connection has been added to the sums; the current one counts by itself.
        octets, messages = self._bytes, self._messages
        if self._reader is not None:
            octets, messages = octets + self._reader.bytes_rcved, messages + self._reader.messages_rcved
        return {"bytes_rcved": octets, "lbmc_msgs_rcved": messages}

    async def close(self) -> None:
        """Leave, and wait until no task is left."""
        self.abandon()
        await asyncio.gather(self._task, return_exceptions=True)

    def abandon(self) -> None:
        """Leave; neither `on_items` nor `on_end` is called afterwards."""
        self._over = True
        if self._reader is not None:
            self._reader.abort()
        self._task.cancel()

    async def _run(self) -> None:
        host, port = parse_place(self.transport)  # The loop looks a host up at each attempt.
        loop = asyncio.get_running_loop()
        while not self._over:
            started = loop.time()
            await self._stay_joined(host, port)
            if not self._over:
                await asyncio.sleep(RETRY_SECONDS - (loop.time() - started))

    async def _stay_joined(self, host: str, port: int) -> None:
        reader = self._reader = StreamReader(self._on_greeting, admits=self._admits)
        connected = False
        try:
            await self._connect(reader, host, port)
            connected = True
            if self._paused:
                reader.pause()
            await reader.ended.wait()
            told = reader.bytes_rcved or self._over or reader.barred
            self._failed = not reader.bytes_rcved
            self._ungreeted = 0 if told else self._ungreeted + 1
            why = UNGREETED if tls.client() is None else UNWANTED
            self._report(tls.cause(reader.failure) or (why if self._ungreeted >= UNGREETED_ATTEMPTS else ""))
        except ConnectionRefusedError:
            self._finish()
        except OSError as error:
            self._report(tls.cause(error))
            if not (self._patient or is_scarce(error)):
                self._finish()
            return  # Unreachable: the life may go on, so the joiner tries again.
        finally:
            self._reader = None
            self._bytes += reader.bytes_rcved
            self._messages += reader.messages_rcved
            reader.abort()
            if connected:  # A connection cancelled while it was made may never report its end.
                await reader.ended.wait()
        if not self._over:
            self._on_end(False)

    async def _connect(self, reader: StreamReader, host: str, port: int) -> None:
        failed, self._failed = self._failed, True  # Until something comes.
        place = self._place = await join_attempts().take(host)
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await asyncio.get_running_loop().create_connection(lambda: reader, host, port, ssl=tls.client())
        except BaseException:
            place.hold()
            raise
        if failed:  # A stranger may accept, and say nothing; a source greets at once, and the place is left.
            place.hold()
        else:
            place.leave()

    def _report(self, why: str) -> None:
        """Log once why the stream cannot be joined, if it is known."""
        if why and why != self._reported:
            logger.warning("the stream of a source at %s cannot be joined. %s", self.transport, why)
        self._reported = why

    def _on_greeting(self, items: list[Item]) -> None:
        """Accept the stream if its greeting is of the expected life; else leave it."""
        reader = self._reader
        if reader is None:
            return
        if self._place is not None:
            self._place.leave()
        session_id = None if isinstance(items[0], Run) else codec.session_of(items[0])
        if session_id is not None and self._expected in (None, session_id):
            self._expected = session_id
            reader.on_items = partial(self._on_items, session_id)
            if rest := items[1:]:
                reader.on_items(rest)
            return
        reader.abort()
        if session_id is not None:
            self._finish()

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._on_end(True)
