"""What resolution costs: relays, services, and very many topics.

    python -m tests.bench.bench_resolution

Prints a line for each measurement. Machines as pure code where a network would only add noise; real sockets for the
relay, whose cost is the kernel's.
"""

import asyncio
import resource
import time
from itertools import count

from stablecast.core.units import SECOND
from stablecast.resolver import RelayDaemon
from stablecast.resolver.endpoint import bind
from stablecast.transports.resolution.context import ResolutionContext
from stablecast.transports.resolution.inputs import AddReceiver, AddSource
from stablecast.transports.resolution.srs_context import SrsContext
from stablecast.transports.resolution.srs_events import Accepted, Connect, Opened, Received, Write
from stablecast.transports.resolution.srs_service import Service
from stablecast.transports.resolution.srs_settings import ServiceConfig
from stablecast.transports.wire import lbmr

RELAY = "10.0.0.100:15380"


def source(topic: str, index: int) -> AddSource:
    """A source of its own topic."""
    return AddSource(topic, "10.0.0.1:14371", 7, index, "10.0.0.1:14391", persistent=True)


def many_topics(topics: int = 100_000, seconds: int = 300) -> None:
    """One context advertises very many topics in the sustaining phase, under the documented limits."""
    context = ResolutionContext.over_relays(b"instance", [RELAY])
    for index in range(topics):
        context.receive(source(f"topic/{index}", index), 0)
        context.take_effects()
    now = 0
    while now < 1_800 * SECOND:  # Limits stretch the initial phase: 16 rounds of 100 s.
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
    """A relay with many clients, on loopback; what is counted is datagrams out."""
    daemon = await RelayDaemon.start("127.0.0.1", 0)
    where = ("127.0.0.1", daemon.port)
    sockets = [bind("127.0.0.1", (0,)) for _ in range(clients)]
    alive = lbmr.encode(lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE))
    query = lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("orders"),)))
    for sock in sockets:
        sock.sendto(alive, where)
    while daemon.statistics()["clients"] < clients:  # noqa: ASYNC110  # no event tells of it
        await asyncio.sleep(0.01)
    began, cpu = time.monotonic(), time.process_time()
    copies = daemon.statistics()["copies"]
    while time.monotonic() - began < seconds:
        for _ in range(20):
            sockets[0].sendto(query, where)
        await asyncio.sleep(0)
    taken = time.monotonic() - began
    sent = daemon.statistics()["copies"] - copies
    cpu = time.process_time() - cpu
    print(f"relay with {clients} clients: {sent / taken:.0f} datagrams a second out, {cpu / taken:.2f} cores")
    for sock in sockets:
        sock.close()
    await daemon.close()


def services(contexts: int = 1_000, sources: int = 100, interests: int = 100) -> None:
    """Every context comes back to a service at once: the full exchange of all, in one process."""
    service = Service(1, ServiceConfig())
    numbers = count(1)
    parties: list[SrsContext] = []
    for number in range(contexts):
        party = SrsContext.create(number.to_bytes(8), ["srs:27000"], number)
        for index in range(sources):
            party.receive(source(f"topic/{number * sources + index}", number * sources + index), 0)
        for index in range(interests):
            party.receive(AddReceiver(f"topic/{(number * sources + 7 * index + 13) % (contexts * sources)}"), 0)
        parties.append(party)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, octets = time.monotonic(), 0
    places: dict[int, tuple[SrsContext, int]] = {}
    number_of: dict[int, int] = {}
    for party in parties:
        party.handle_timeout(0)
    busy = True
    while busy:
        busy = False
        for party in parties:
            for effect in party.take_effects():
                busy = True
                match effect:
                    case Connect(connection):
                        number = next(numbers)
                        places[number] = (party, connection)
                        number_of[id(party)] = number
                        service.receive(Accepted(number, "10.0.0.1:1"), 0)
                        party.receive(Opened(connection, "10.0.0.1:1"), 0)
                    case Write(_, data):
                        octets += len(data)
                        service.receive(Received(number_of[id(party)], data), 0)
        for told in service.take_effects():
            busy = True
            if isinstance(told, Write):
                octets += len(told.data)
                party, connection = places[told.connection]
                party.receive(Received(connection, told.data), 0)
    taken = time.monotonic() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    total = contexts * sources
    known = sum(party.counters()["known"] for party in parties)
    print(
        f"service: {contexts} contexts, {total} sources, {contexts * interests} interests: {taken:.1f} s, "
        f"{octets / 1e6:.1f} MB, {grown * 1024 / total:.0f} bytes a source at both ends, {known} known"
    )


if __name__ == "__main__":
    many_topics()
    asyncio.run(relay())
    services()
