"""The schedule of advertisements and queries, measured on real sockets."""

import asyncio
import socket
import time
from statistics import median

import pytest

from stablecast.resolver import Listeners, Resolver
from stablecast.runtime.datagrams import bind
from stablecast.transports.resolution.udp.inputs import AddSource
from stablecast.transports.wire import lbmr
from tests.transports.resolution.virtual import ADVERTISEMENTS, QUERIES

LOCAL = "127.0.0.1"
SECONDS = 1.2
JITTER_MS = 15
"""Observed jitter of the original implementation (ms)."""


async def received(relay: socket.socket, seconds: float) -> list[tuple[float, lbmr.Packet]]:
    """Return the packets with records that a relay receives, each with its time (s)."""
    loop = asyncio.get_running_loop()
    found = []
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        try:
            data = await asyncio.wait_for(loop.sock_recv(relay, lbmr.MAX_DATAGRAM), left)
        except TimeoutError:
            break
        packet = lbmr.decode(data)
        if isinstance(packet, lbmr.Packet) and packet.kind == lbmr.PacketKind.NORMAL:
            found.append((time.monotonic(), packet))
    return found


async def longest_stop(seconds: float) -> float:
    """Return the longest time for which this machine delayed a sleep (ms)."""
    loop, longest = asyncio.get_running_loop(), 0.0
    ends = loop.time() + seconds
    while (before := loop.time()) < ends:
        await asyncio.sleep(0.002)
        longest = max(longest, 1_000 * (loop.time() - before - 0.002))
    return longest


def deviations(instants: list[float], schedule: tuple[int, ...]) -> list[float]:
    """Return the deviation of each instant from the schedule (ms), counted from the first instant."""
    return [
        abs(1_000 * (instant - instants[0]) - planned) for instant, planned in zip(instants, schedule, strict=False)
    ]


@pytest.mark.rows("T-102", "T-107")
async def test_turns_come_at_their_instants_within_the_jitter_of_the_original() -> None:
    """T25, T-102, T-107, as observed: no turn is left out, and delays do not add up.

    The test measures the machine's own stops as well. If they are longer than the jitter, the result means nothing.
    """
    with bind(LOCAL, 0) as relay:
        where = f"{LOCAL}:{relay.getsockname()[1]}"
        resolver = await Resolver.start(LOCAL, [where], Listeners(lambda *_: None))
        resolver.add_receiver("nobody's")
        resolver.add_source(AddSource("orders", f"{LOCAL}:14371", 7, 1, f"{LOCAL}:14391", persistent=True))
        packets, stopped = await asyncio.gather(received(relay, SECONDS), longest_stop(SECONDS))
        await resolver.close()
    advertised = [at for at, packet in packets for tir in packet.advertisements if tir.ttl != 16]
    queried = [at for at, packet in packets if packet.queries]
    assert advertised
    assert queried
    if stopped > JITTER_MS:
        pytest.skip(f"this machine is too busy: it stopped for {stopped:.0f} ms")
    for instants, schedule in ((advertised, ADVERTISEMENTS), (queried, QUERIES)):
        assert len(instants) >= sum(planned < 1_000 * SECONDS - 100 for planned in schedule)
        assert median(deviations(instants, schedule)) < JITTER_MS
        assert max(deviations(instants, schedule)) < JITTER_MS + stopped
