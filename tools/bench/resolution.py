"""The cost of topic resolution: relays, and very many topics. `tools.bench.services` measures resolution services.

    python -m tools.bench.resolution

The program prints a line for each measurement. The topics run on machines alone, because a network would only add
noise. The relay runs on real sockets, because its cost is the kernel's.
"""

import asyncio
import time

from stablecast.core.machine.units import SECOND
from stablecast.resolver import RelayDaemon
from stablecast.runtime.datagrams import bind
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.inputs import AddSource
from stablecast.transports.wire import lbmr

RELAY = "10.0.0.100:15380"


def source(topic: str, index: int) -> AddSource:
    """Return the input that adds a source of one topic."""
    return AddSource(topic, "10.0.0.1:14371", 7, index, "10.0.0.1:14391", persistent=True)


def many_topics(topics: int = 100_000, seconds: int = 300) -> None:
    """Measure one context that advertises very many topics in the sustaining phase, under the documented limits."""
    context = ResolutionContext.over_relays(b"instance", [RELAY])
    for index in range(topics):
        context.receive(source(f"topic/{index}", index), 0)
        context.take_effects()
    now = 0
    while now < 1_800 * SECOND:  # the limits stretch the initial phase to 16 rounds of 100 s
        now = context.next_timeout() or now
        context.handle_timeout(now)
        context.take_effects()
    began, ends, calls, sent = time.process_time(), now + seconds * SECOND, 0, context.counted.sent
    while now < ends:
        now = context.next_timeout() or now
        context.handle_timeout(now)
        context.take_effects()
        calls += 1
    cpu = time.process_time() - began
    print(
        f"{topics} topics, sustaining: {100 * cpu / seconds:.1f} % of a core, {calls / seconds:.0f} wakes a second, "
        f"{(context.counted.sent - sent) / seconds:.0f} datagrams a second"
    )


async def relay(clients: int = 50, seconds: float = 3) -> None:
    """Measure a relay with many clients on loopback, by its outgoing datagrams."""
    daemon = await RelayDaemon.start("127.0.0.1", 0)
    where = ("127.0.0.1", daemon.port)
    sockets = [bind("127.0.0.1", 0) for _ in range(clients)]
    alive = lbmr.encode(lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE))
    query = lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("orders"),)))
    for sock in sockets:
        sock.sendto(alive, where)
    while daemon.statistics()["clients"] < clients:  # noqa: ASYNC110  # there is no event for a new client
        await asyncio.sleep(0.01)
    began, cpu = time.monotonic(), time.process_time()
    copies = daemon.statistics()["copies"]
    while time.monotonic() - began < seconds:
        for _ in range(20):
            sockets[0].sendto(query, where)
        await asyncio.sleep(0)
    elapsed = time.monotonic() - began
    sent = daemon.statistics()["copies"] - copies
    cpu = time.process_time() - cpu
    print(f"relay with {clients} clients: {sent / elapsed:.0f} datagrams a second out, {cpu / elapsed:.2f} cores")
    for sock in sockets:
        sock.close()
    await daemon.close()


if __name__ == "__main__":
    many_topics()
    asyncio.run(relay())
