"""LBT-RM, LBT-RU and LBT-TCP with three receivers, next to loops over bare sockets with the same bytes.

All ends are in one process. The figure is its processor time including the kernel: the cost of one source and three
receivers. The sender waits until its data has arrived, so that no datagram is dropped or repaired.
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
from stablecast.runtime.datagrams import MAX_DATAGRAM
from stablecast.runtime.reliable_receivers import ReliableReceivers
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.runtime.stream import Item, StreamJoiner, StreamServer
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, build
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.lbtrm import LbtrmSources
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.settings import RateSettings, SourceSettings
from tools.bench.scenario import Figures, Measure, Options, Scenario

HOST = "127.0.0.1"
GROUP, PORT = "239.192.7.8", 14_499
RECEIVERS = 3
UNLIMITED = RateSettings(10_000_000, 1 << 50, 1 << 50)
SETTINGS = SourceSettings(batch_bytes=1 << 16, window_bytes=1 << 22)
IN_BLOCK = 4
"""Number of datagrams in one write of a source: 32 KiB, as in the client."""
AT_ONCE = 8
"""Number of blocks under way, which fit into the buffers of the kernel."""
HEADER_BYTES = 12
READ_BYTES = 1 << 18

Block = bytes
Send = Callable[[Block], object]


def blocks(options: Options) -> tuple[list[Block], int]:
    """Return the blocks to send, as a source writes them, and the number of messages in a datagram."""
    each = (SETTINGS.datagram_max - 20) // (HEADER_BYTES + options.size)
    count = max(AT_ONCE, options.messages // (each * IN_BLOCK))
    payloads = [bytes(options.size)] * (each * IN_BLOCK)
    return [build(7, number * each * IN_BLOCK, payloads) for number in range(count)], each


def figures(carried: int, each: int, seconds: float) -> Figures:
    """Return the rates by processor time for `carried` datagrams of `each` messages."""
    rate = carried / seconds / 1e3
    return {"datagrams": rate, "messages": rate * each, "cpu": 1e3 / rate}


def cut(block: Block) -> list[bytes]:
    """Return the datagrams of a block, with a placeholder for the protocol's header."""
    size = len(block) // IN_BLOCK
    return [bytes(20) + block[start : start + size] for start in range(0, len(block), size)]


def bare(kind: str, options: Options, _: Path) -> Figures:
    """Measure datagram sockets alone."""
    written, each = blocks(options)
    with ExitStack() as stack:
        receivers, send = {"multicast": _group, "unicast": _clients}[kind](stack)
        started = time.process_time()
        for begin in range(0, len(written), AT_ONCE):
            some = written[begin : begin + AT_ONCE]
            for block in some:
                for octets in cut(block):
                    send(octets)
            for sock in receivers:
                for _number in range(len(some) * IN_BLOCK):
                    sock.recvfrom(MAX_DATAGRAM)
        return figures(len(written) * IN_BLOCK, each, time.process_time() - started)


def _group(stack: ExitStack) -> tuple[list[socket.socket], Send]:
    receivers = [stack.enter_context(multicast.hearing(GROUP, PORT, HOST)) for _ in range(RECEIVERS)]
    sender = stack.enter_context(multicast.sending(HOST))
    return _with_timeout(receivers), lambda octets: sender.sendto(octets, (GROUP, PORT))


def _clients(stack: ExitStack) -> tuple[list[socket.socket], Send]:
    receivers = [stack.enter_context(datagrams.bind(HOST, 0)) for _ in range(RECEIVERS)]
    sender = stack.enter_context(datagrams.bind(HOST, 0))
    places = [sock.getsockname() for sock in receivers]

    def send(octets: bytes) -> None:
        for place in places:
            sender.sendto(octets, place)

    return _with_timeout(receivers), send


def _with_timeout(sockets: list[socket.socket]) -> list[socket.socket]:
    for sock in sockets:
        sock.settimeout(5)
    return sockets


def bare_stream(options: Options, _: Path) -> Figures:
    """Measure TCP sockets alone."""
    written, each = blocks(options)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server((HOST, 0)))
        receivers = [stack.enter_context(socket.create_connection(listening.getsockname())) for _ in range(RECEIVERS)]
        senders = [stack.enter_context(listening.accept()[0]) for _ in range(RECEIVERS)]
        started = time.process_time()
        for block in written:
            for sock in senders:
                sock.sendall(block)
            for sock in receivers:
                left = len(block)
                while left:
                    left -= len(sock.recv(READ_BYTES))
        return figures(len(written) * IN_BLOCK, each, time.process_time() - started)


async def paced(send: Send, written: Iterable[Block], arrived: Callable[[], int], in_block: int) -> float:
    """Send all blocks, some at a time; return the processor time (s)."""
    started = time.process_time()
    sent = 0
    for number, block in enumerate(written, 1):
        send(block)
        sent += in_block
        if number % AT_ONCE == 0:
            while arrived() < sent:  # noqa: ASYNC110  # the benchmark measures the turns of the loop
                await asyncio.sleep(0)
    while arrived() < sent:  # noqa: ASYNC110
        await asyncio.sleep(0)
    return time.process_time() - started


async def session(kind: str, options: Options) -> Figures:
    """Measure a source's session with the sessions of its receivers."""
    written, each = blocks(options)
    found = [0] * RECEIVERS

    def received(place: int, effect: fx.ReceiverEffect) -> None:
        if isinstance(effect, fx.Received):
            found[place] += sum(item.count for item in effect.items if isinstance(item, Run))

    machine = LbtrmSources(UNLIMITED) if kind == "lbtrm" else LbtruSources(UNLIMITED)
    sources, receivers = ReliableSources(machine, HOST), [ReliableReceivers(HOST) for _ in range(RECEIVERS)]
    number = sources.open(f"{GROUP}:{PORT}" if kind == "lbtrm" else "", SETTINGS)
    for place, those in enumerate(receivers):
        those.join(sources.where(number), partial(received, place))
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
    """Measure a source's stream over TCP."""
    written, each = blocks(options)
    found = [0] * RECEIVERS

    def received(place: int, _: int, items: list[Item]) -> None:
        found[place] += sum(item.count for item in items if isinstance(item, Run))

    listening = ports.listen(HOST, 0, "port")
    place = f"{HOST}:{listening.getsockname()[1]}"
    server = StreamServer(listening, lambda: codec.greeting(5))
    await server.start()
    joiners = [StreamJoiner(place, 5, partial(received, number), lambda _: None) for number in range(RECEIVERS)]
    while len(server.subscribers) < RECEIVERS:  # noqa: ASYNC110
        await asyncio.sleep(0)
    seconds = await paced(server.write, written, lambda: min(found), each * IN_BLOCK)
    for joiner in joiners:
        await joiner.close()
    await server.close()
    return figures(len(written) * IN_BLOCK, each, seconds)


def ran(make: Callable[[Options], Awaitable[Figures]], options: Options, _: Path) -> Figures:
    """Run a measurement in an event loop of its own."""

    async def main() -> Figures:
        return await make(options)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def transports(_: Options) -> Scenario:
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
        "one source and three receivers in one process, datagrams of 8 KiB; bare: the same bytes over sockets alone",
        "none: only the transport is measured",
        systems,
        {"datagrams": "1000 datagrams per CPU s", "messages": "1000 messages per CPU s", "cpu": "CPU µs a datagram"},
        [(ours, bare, "datagrams") for ours, bare in zip(tuple(systems)[1::2], tuple(systems)[::2], strict=True)],
    )
