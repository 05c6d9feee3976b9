"""The baseline: the same data path without the protocol, as fast as Python and an event loop permit.

A source puts a 12-byte header before each message and writes the same bytes to a receiver and to a store. Both walk the
headers and check every number. The store appends the bytes to a file, syncs in a thread while more arrives (group
commit), and answers with the number up to which everything is synced. The source keeps at most `flight` messages
unanswered. There is no registration, recovery, retention or timer, and a broken connection ends the run.
"""

import asyncio
import os
import struct
import time
from collections.abc import Callable

import uvloop

from tools.bench.roles import BenchError, Wire, Work

HEADER = struct.Struct(">BBHII")
ANSWER = struct.Struct(">I")
BLOCK_BYTES = 32 * 1024
"""Size of the blocks in which messages are written."""

TURN_MESSAGES = 2048
"""Number of messages after which the source yields to the event loop."""

BUFFERED_BYTES = 8 << 20
"""Limit of the write buffer of a connection."""

MAX_BUFFERS = 512
"""Number of blocks in one vectored write."""


def walk(data: bytes, expected: int) -> tuple[int, int]:
    """Check every whole message; return the position of the incomplete one and the number expected there."""
    position, size, header, unpack = 0, len(data), HEADER.size, HEADER.unpack_from
    while size - position >= header:
        _, _, length, _, number = unpack(data, position)
        if size - position < length:
            break
        if number != expected:
            raise BenchError(f"message {number} arrived instead of {expected}")
        expected += 1
        position += length
    return position, expected


class Subscriber(asyncio.Protocol):
    """A connection of the source to a joined process. `on_answer` is called with the end of the stable numbers."""

    def __init__(self, on_made: Callable[[asyncio.Transport], None], on_answer: Callable[[int], None]) -> None:
        self._on_made = on_made
        self._on_answer = on_answer
        self._rest = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        transport.set_write_buffer_limits(BUFFERED_BYTES)
        self._on_made(transport)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        whole = len(data) - len(data) % ANSWER.size
        if whole:
            self._on_answer(ANSWER.unpack_from(data, whole - ANSWER.size)[0])
        self._rest = data[whole:]


class CheckedConnection(asyncio.Protocol):
    """A connection to the source. It checks the arriving messages and passes whole ones to `on_data`."""

    def __init__(self, on_data: Callable[[bytes, int], None]) -> None:
        self._on_data = on_data
        self._rest = b""
        self._expected = 0

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        used, self._expected = walk(data, self._expected)
        self._rest = data[used:]
        self._on_data(data[:used], self._expected)


async def join(wire: Wire, connection: CheckedConnection) -> asyncio.Transport:
    host, _, port = wire.addresses["source"].rpartition(":")
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: connection, host, int(port))
    return transport


async def _source(work: Work, wire: Wire) -> None:
    peers: list[asyncio.Transport] = []
    room = asyncio.Event()
    stable = 0

    def answered(number: int) -> None:
        nonlocal stable
        stable = number
        room.set()

    server = await asyncio.get_running_loop().create_server(lambda: Subscriber(peers.append, answered), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.to_thread(wire.ready, f"127.0.0.1:{port}")
    payload, parts, number = b"x" * work.size, [], 0
    in_block = max(1, BLOCK_BYTES // (HEADER.size + work.size))
    started = time.perf_counter()
    while number < work.messages:
        while number - stable >= work.flight:
            room.clear()
            await room.wait()
        turn = min(number + TURN_MESSAGES, stable + work.flight, work.messages)
        while number < turn:
            stop = min(number + in_block, turn)
            while number < stop:
                parts.append(HEADER.pack(0, 0, HEADER.size + len(payload), 7, number))
                parts.append(payload)
                number += 1
            block = b"".join(parts)
            parts.clear()
            for peer in peers:
                peer.write(block)
        await asyncio.sleep(0)
    while stable < work.messages:
        room.clear()
        await room.wait()
    per_s = work.messages / (time.perf_counter() - started)
    await asyncio.to_thread(wire.done, per_s=per_s)


async def _receiver(work: Work, wire: Wire) -> None:
    complete = asyncio.Event()
    started = ended = 0.0

    def received(_: bytes, number: int) -> None:
        nonlocal started, ended
        started = started or time.perf_counter()
        if number == work.messages:
            ended = time.perf_counter()
            complete.set()

    await join(wire, CheckedConnection(received))
    await asyncio.to_thread(wire.ready)
    await complete.wait()
    await asyncio.to_thread(wire.done, per_s=work.messages / (ended - started))


async def _store(work: Work, wire: Wire) -> None:
    waiting: list[bytes] = []
    arrived = asyncio.Event()
    newest = 0
    descriptor = os.open(work.directory / "log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)

    def received(block: bytes, number: int) -> None:
        nonlocal newest
        newest = number
        waiting.append(block)
        arrived.set()

    def commit(blocks: list[bytes]) -> None:
        for first in range(0, len(blocks), MAX_BUFFERS):
            os.writev(descriptor, blocks[first : first + MAX_BUFFERS])
        os.fdatasync(descriptor)

    transport = await join(wire, CheckedConnection(received))
    await asyncio.to_thread(wire.ready)
    number = syncs = 0
    while number < work.messages:
        await arrived.wait()
        arrived.clear()
        blocks, number = waiting[:], newest
        waiting.clear()
        await asyncio.to_thread(commit, blocks)
        syncs += 1
        transport.write(ANSWER.pack(number))
    await asyncio.to_thread(wire.done, syncs=syncs)


def source(work: Work, wire: Wire) -> None:
    """Send messages. Figures: `per_s`, stable messages per second."""
    uvloop.run(_source(work, wire))


def receiver(work: Work, wire: Wire) -> None:
    """Receive messages. Figures: `per_s`, delivered messages per second."""
    uvloop.run(_receiver(work, wire))


def store(work: Work, wire: Wire) -> None:
    """Store messages. Figures: `syncs`, the number of flushes."""
    uvloop.run(_store(work, wire))


ROLES = {"source": source, "store": store, "receiver": receiver}
