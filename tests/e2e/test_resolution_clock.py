"""The schedule of advertisements and queries, as a relay sees it on a simulated machine, whose clock never stops."""

import asyncio
import time

import pytest

from stablecast.resolver import Listeners, Resolver
from stablecast.runtime.datagrams import bind
from stablecast.transports.resolution.udp.inputs import AddSource
from stablecast.transports.wire import lbmr
from tests.adapters.lab.world.scene import scene
from tests.transports.resolution.virtual import ADVERTISEMENTS, QUERIES

SPAN_MS = 1_200
JITTER_MS = 15
"""Observed jitter of the original implementation."""


async def listen() -> list[tuple[float, lbmr.Packet]]:
    """Return the packets with records that a relay receives from a context, each with its time (ms)."""
    with bind("127.0.0.1", 0) as relay:
        where = f"127.0.0.1:{relay.getsockname()[1]}"
        resolver = await Resolver.start("127.0.0.1", [where], Listeners(lambda *_: None))
        resolver.add_receiver("nobody's")
        resolver.add_source(AddSource("orders", "127.0.0.1:14371", 7, 1, "127.0.0.1:14391", persistent=True))
        loop, found = asyncio.get_running_loop(), []
        ends = time.monotonic() + SPAN_MS / 1_000
        while (left := ends - time.monotonic()) > 0:
            try:
                data = await asyncio.wait_for(loop.sock_recv(relay, lbmr.MAX_DATAGRAM), left)
            except TimeoutError:
                break
            packet = lbmr.decode(data)
            if isinstance(packet, lbmr.Packet) and packet.kind == lbmr.PacketKind.NORMAL:
                found.append((1_000 * time.monotonic(), packet))
        await resolver.close()
        return found


@pytest.mark.rows("T-102", "T-107")
def test_turns_come_at_their_instants_within_the_jitter_of_the_original() -> None:
    """T25, T-102, T-107, as observed: no turn is left out, and delays do not add up."""
    with scene(1) as world:
        (packets,) = (one.status for one in world.run_programs(host=lambda: asyncio.run(listen())))
    advertised = [at for at, packet in packets for tir in packet.advertisements if tir.ttl != 16]
    queried = [at for at, packet in packets if packet.queries]
    for instants, schedule in ((advertised, ADVERTISEMENTS), (queried, QUERIES)):
        assert len(instants) == sum(planned < SPAN_MS for planned in schedule)
        late = [at - instants[0] - planned for at, planned in zip(instants, schedule, strict=False)]
        assert max(map(abs, late)) < JITTER_MS
