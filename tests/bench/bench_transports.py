"""What LBT-RM and LBT-RU cost, next to a loop over bare sockets in the same run.

    python -m tests.bench.bench_transports

Prints a line for each measurement. Both ends are in one process, one after the other at work, so a figure is the cost
of both; the sender goes on when what it sent has arrived, so that nothing is dropped and nothing repaired.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from stablecast.net import datagrams
from stablecast.net.datagrams import Datagram, DatagramSocket
from stablecast.net.reliable_receivers import ReliableReceivers
from stablecast.net.reliable_sources import ReliableSources
from stablecast.transports.lbtrm import LbtrmReceiver, LbtrmSources
from stablecast.transports.lbtru import LbtruSources
from stablecast.transports.lbttcp import Run
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.batching import Mark
from stablecast.transports.reliable.inputs import Arrived, Open, Submit
from stablecast.transports.reliable.settings import RateSettings, SourceSettings
from stablecast.transports.wire import lbmc

HOST = "127.0.0.1"
GROUP = "239.192.7.8:14499"
UNLIMITED = RateSettings(10_000_000, 1 << 50, 1 << 50)
AT_ONCE = 32
"""Datagrams under way."""
PAYLOAD_BYTES = 100
SHAPES = ((1, 20_000), (64, 4_000))
"""Messages in a datagram, and datagrams."""


def block(first: int, count: int) -> bytes:
    """Messages of 100 bytes."""
    one = lbmc.MessageKind.DATA
    messages = (lbmc.Message(one, 7, number, (), bytes(PAYLOAD_BYTES)) for number in range(first, first + count))
    return b"".join(map(lbmc.encode, messages))


def told(name: str, messages: int, count: int, seconds: float) -> None:
    """A line."""
    rate, cost = count / seconds, seconds / count * 1e6
    print(f"{name:9} {messages:3} messages in a datagram: {rate:9,.0f} datagrams/s {rate * messages:11,.0f} messages/s"
          f" {cost:6.1f} us a datagram")  # fmt: skip


async def paced(send: Callable[[int], None], arrived: Callable[[], int], blocks: int) -> float:
    """Seconds for all, some at a time."""
    started = time.perf_counter()
    for start in range(0, blocks, AT_ONCE):
        for number in range(start, min(start + AT_ONCE, blocks)):
            send(number)
        while arrived() < min(start + AT_ONCE, blocks):  # noqa: ASYNC110  # the loop is what is measured
            await asyncio.sleep(0)
    return time.perf_counter() - started


async def bare(messages: int, count: int) -> None:
    """The same bytes, sent and received and no more."""
    blocks = [block(number * messages, messages) for number in range(count)]
    found = [0]

    def read(those: list[Datagram]) -> None:
        found[0] += len(those)

    hearing, saying = (DatagramSocket(datagrams.bind(HOST, 0), read) for _ in range(2))
    target = f"{HOST}:{hearing.port}"
    told(
        "bare", messages, count, await paced(lambda n: saying.send(target, blocks[n : n + 1]), lambda: found[0], count)
    )
    for sock in (hearing, saying):
        sock.close()


async def session(kind: str, messages: int, count: int) -> None:
    """Through a source's and a receiver's session."""
    blocks = [block(number * messages, messages) for number in range(count)]
    found, began = [0], asyncio.Event()

    def heard(effect: fx.ReceiverEffect) -> None:
        if isinstance(effect, fx.Began):
            began.set()
        elif isinstance(effect, fx.Received):
            found[0] += sum(item.count for item in effect.items if isinstance(item, Run))

    multicast = kind == "LBT-RM"
    sources = ReliableSources((LbtrmSources if multicast else LbtruSources)(UNLIMITED), HOST)
    receivers = ReliableReceivers(HOST)
    number = sources.open(GROUP if multicast else "", SourceSettings(batch_bytes=1 << 16))
    receivers.join(sources.where(number), heard)
    if not multicast:
        await began.wait()

    def send(place: int) -> None:
        sources.submit(number, blocks[place], Mark.END)

    told(kind, messages, count, await paced(send, lambda: found[0] // messages, count))
    receivers.close()
    sources.close()


def machine(messages: int, count: int) -> None:
    """The source's machine alone."""
    blocks = [block(number * messages, messages) for number in range(count)]
    source = LbtrmSources(UNLIMITED)
    source.receive(Open(1, GROUP, 5, 14390, SourceSettings(batch_bytes=messages * 112)), 0)
    sent: list[bytes] = []
    started = time.perf_counter()
    for place, octets in enumerate(blocks):
        source.receive(Submit(1, octets), place)
        for effect in source.take_effects():
            sent += effect.datagrams if isinstance(effect, fx.SendDatagrams) else ()
    told("source", messages, count, time.perf_counter() - started)
    receiver_alone(messages, count, sent)


def receiver_alone(messages: int, count: int, sent: list[bytes]) -> None:
    """The receiver's machine alone, one read of several datagrams at a time."""
    receiver = LbtrmReceiver(f"{HOST}:14390", 5, 1, 0)
    started = time.perf_counter()
    for start in range(0, count, AT_ONCE):
        receiver.receive(Arrived(tuple(sent[start : start + AT_ONCE])), start)
        receiver.take_effects()
        receiver.next_timeout()
    told("receiver", messages, count, time.perf_counter() - started)


async def main() -> None:
    """All shapes, all systems."""
    for messages, count in SHAPES:
        machine(messages, count)
        runs: tuple[Awaitable[None], ...] = (
            bare(messages, count),
            session("LBT-RU", messages, count),
            session("LBT-RM", messages, count),
        )
        for run in runs:
            await run


if __name__ == "__main__":
    asyncio.run(main())
