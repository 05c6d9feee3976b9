"""LBT-RM, LBT-RU and LBT-TCP with three receivers, next to loops over bare sockets that carry the same bytes.

All ends are in one process, at work in turns, and what counts is its processor time, kernel included: the cost of one
source and three receivers. The sender goes on when what it sent has arrived, so that nothing is dropped or repaired.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import uvloop

from stablecast.runtime import datagrams, multicast, ports
from stablecast.runtime.datagram_buffers import MAX_DATAGRAM
from stablecast.runtime.reliable_receivers import ReliableReceivers
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.runtime.stream import Item, StreamServer
from stablecast.runtime.stream_joiner import StreamJoiner
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, build
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.lbtrm import LbtrmSources
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.settings import RateSettings, SourceSettings
from tests.bench.scenario import Figures, Measure, Options, Scenario

HOST = "127.0.0.1"
GROUP, PORT = "239.192.7.8", 14_499
RECEIVERS = 3
UNLIMITED = RateSettings(10_000_000, 1 << 50, 1 << 50)
SETTINGS = SourceSettings(batch_bytes=1 << 16, window_bytes=1 << 22)
IN_BLOCK = 4
"""Datagrams of what a source writes at once: 32 KiB, as the client does."""
AT_ONCE = 8
"""Blocks under way: so much the buffers of the kernel hold."""
HEADER_BYTES = 12
READ_BYTES = 1 << 18

Block = bytes
Send = Callable[[Block], object]


def blocks(options: Options) -> tuple[list[Block], int]:
    """What is to be sent, as a source writes it, and how many messages a datagram of it has."""
    each = (SETTINGS.datagram_max - 20) // (HEADER_BYTES + options.size)
    count = max(AT_ONCE, options.messages // (each * IN_BLOCK))
    payloads = [bytes(options.size)] * (each * IN_BLOCK)
    return [build(7, number * each * IN_BLOCK, payloads) for number in range(count)], each


def figures(carried: int, each: int, seconds: float) -> Figures:
    """Of so many datagrams of so many messages: rates by processor time."""
    rate = carried / seconds / 1e3
    return {"datagrams": rate, "messages": rate * each, "cpu": 1e3 / rate}


def cut(block: Block) -> list[bytes]:
    """The datagrams of a block, with as many bytes before the messages as the protocol has."""
    size = len(block) // IN_BLOCK
    return [bytes(20) + block[start : start + size] for start in range(0, len(block), size)]


def bare(kind: str, options: Options, _: Path) -> Figures:
    """Sockets, and nothing else."""
    written, each = blocks(options)
    with ExitStack() as stack:
        hearing, send = {"multicast": _group, "unicast": _clients}[kind](stack)
        started = time.process_time()
        for begin in range(0, len(written), AT_ONCE):
            some = written[begin : begin + AT_ONCE]
            for block in some:
                for octets in cut(block):
                    send(octets)
            for sock in hearing:
                for _number in range(len(some) * IN_BLOCK):
                    sock.recvfrom(MAX_DATAGRAM)
        return figures(len(written) * IN_BLOCK, each, time.process_time() - started)


def _group(stack: ExitStack) -> tuple[list[socket.socket], Send]:
    hearing = [stack.enter_context(multicast.hearing(GROUP, PORT, HOST)) for _ in range(RECEIVERS)]
    saying = stack.enter_context(multicast.sending(HOST))
    return _patient(hearing), lambda octets: _to(saying, octets, (GROUP, PORT))


def _to(saying: socket.socket, octets: bytes, place: tuple[str, int]) -> None:
    saying.sendto(octets, place)


def _clients(stack: ExitStack) -> tuple[list[socket.socket], Send]:
    hearing = [stack.enter_context(datagrams.bind(HOST, 0)) for _ in range(RECEIVERS)]
    saying = stack.enter_context(datagrams.bind(HOST, 0))
    places = [sock.getsockname() for sock in hearing]

    def send(octets: bytes) -> None:
        for place in places:
            saying.sendto(octets, place)

    return _patient(hearing), send


def _patient(sockets: list[socket.socket]) -> list[socket.socket]:
    for sock in sockets:
        sock.settimeout(5)
    return sockets


def bare_stream(options: Options, _: Path) -> Figures:
    """The same over TCP."""
    written, each = blocks(options)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server((HOST, 0)))
        hearing = [stack.enter_context(socket.create_connection(listening.getsockname())) for _ in range(RECEIVERS)]
        saying = [stack.enter_context(listening.accept()[0]) for _ in range(RECEIVERS)]
        started = time.process_time()
        for block in written:
            for sock in saying:
                sock.sendall(block)
            for sock in hearing:
                left = len(block)
                while left:
                    left -= len(sock.recv(READ_BYTES))
        return figures(len(written) * IN_BLOCK, each, time.process_time() - started)


async def paced(send: Send, written: Iterable[Block], arrived: Callable[[], int], in_block: int) -> float:
    """Processor seconds for all, some at a time."""
    started = time.process_time()
    sent = 0
    for number, block in enumerate(written, 1):
        send(block)
        sent += in_block
        if number % AT_ONCE == 0:
            while arrived() < sent:  # noqa: ASYNC110  # the loop is what is measured
                await asyncio.sleep(0)
    while arrived() < sent:  # noqa: ASYNC110
        await asyncio.sleep(0)
    return time.process_time() - started


async def session(kind: str, options: Options) -> Figures:
    """Through a source's session and those of its receivers."""
    written, each = blocks(options)
    found = [0] * RECEIVERS

    def heard(place: int, effect: fx.ReceiverEffect) -> None:
        if isinstance(effect, fx.Received):
            found[place] += sum(item.count for item in effect.items if isinstance(item, Run))

    machine = LbtrmSources(UNLIMITED) if kind == "lbtrm" else LbtruSources(UNLIMITED)
    sources, receivers = ReliableSources(machine, HOST), [ReliableReceivers(HOST) for _ in range(RECEIVERS)]
    number = sources.open(f"{GROUP}:{PORT}" if kind == "lbtrm" else "", SETTINGS)
    for place, those in enumerate(receivers):
        those.join(sources.where(number), partial(heard, place))
    while kind == "lbtru" and sources.statistics(number)["num_clients"] < RECEIVERS:  # noqa: ASYNC110
        await asyncio.sleep(0)
    seconds = await paced(
        lambda block: sources.offer(number, block, BatchMark.END), written, lambda: min(found), each * IN_BLOCK
    )
    for those in receivers:
        those.close()
    sources.close()
    return figures(len(written) * IN_BLOCK, each, seconds)


async def stream(options: Options) -> Figures:
    """Through a source's stream over TCP."""
    written, each = blocks(options)
    found = [0] * RECEIVERS

    def heard(place: int, _: int, items: list[Item]) -> None:
        found[place] += sum(item.count for item in items if isinstance(item, Run))

    listening = ports.listen(HOST, 0, "port")
    place = f"{HOST}:{listening.getsockname()[1]}"
    server = StreamServer(listening, lambda: codec.greeting(5))
    await server.start()
    joiners = [StreamJoiner(place, 5, partial(heard, number), lambda _: None) for number in range(RECEIVERS)]
    while len(server.subscribers) < RECEIVERS:  # noqa: ASYNC110
        await asyncio.sleep(0)
    seconds = await paced(server.write, written, lambda: min(found), each * IN_BLOCK)
    for joiner in joiners:
        await joiner.close()
    await server.close()
    return figures(len(written) * IN_BLOCK, each, seconds)


def ran(make: Callable[[Options], Awaitable[Figures]], options: Options, _: Path) -> Figures:
    """On a loop of its own."""

    async def main() -> Figures:
        return await make(options)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def transports(_: Options) -> Scenario:
    """What the protocols cost."""
    systems: dict[str, Measure] = {
        "bare multicast": partial(bare, "multicast"),
        "LBT-RM": partial(ran, partial(session, "lbtrm")),
        "bare unicast": partial(bare, "unicast"),
        "LBT-RU": partial(ran, partial(session, "lbtru")),
        "bare TCP": bare_stream,
        "LBT-TCP": partial(ran, stream),
    }
    return Scenario(
        "transports",
        "one source and three receivers in one process, datagrams of 8 KiB; bare: sockets alone, the same bytes",
        "none: what is measured is the transport",
        systems,
        {"datagrams": "1000 datagrams per CPU s", "messages": "1000 messages per CPU s", "cpu": "CPU µs a datagram"},
        [(ours, bare, "datagrams") for ours, bare in zip(tuple(systems)[1::2], tuple(systems)[::2], strict=True)],
    )
