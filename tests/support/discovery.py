"""A source process and a receiver process that use each kind of topic resolution, and pairs of kinds.

    python -m tests.support.discovery source IP PORT RELAY SERVICE    send until killed
    python -m tests.support.discovery receiver IP PORT RELAY SERVICE  print a line for each receiver that got data

The name of a topic lists the kinds that its source uses. The name of a receiver lists the kinds of its context. The
multicast group uses `PORT` on the interface `IP`. The receiver process ends when every receiver got data.
"""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

from stablecast.client import Context, Receiver, resolution

GROUP = "239.255.77.79"

RECEIVERS: Mapping[str, tuple[str, ...]] = {
    "multicast": ("multicast", "multicast+srs"),
    "relay": ("relay", "relay+srs", "multicast+relay"),
    "srs": ("srs", "multicast+srs", "relay+srs"),
    "multicast+srs": ("multicast", "srs", "multicast+srs"),
    "relay+srs": ("relay", "srs", "relay+srs"),
    "multicast+relay": ("relay", "multicast+relay"),
}
"""The receivers of each topic. A context with a relay uses no multicast (T-008)."""

MESSAGES = 3
"""Number of messages after which a receiver is done."""

PAUSE_SECONDS = 0.02


def context(kinds: str, interface: str, port: str, relay: str, service: str) -> Context:
    """Return a context that uses these kinds of resolution."""
    group = {
        "resolver_multicast_address": GROUP,
        "resolver_multicast_port": port,
        "resolver_multicast_interface": interface,
        "resolver_multicast_ttl": "1",
    }
    return Context(
        interface=interface,
        resolver=[relay] if "relay" in kinds else [],
        resolver_service=[service] if "srs" in kinds else [],
        resolution=resolution(options=group if "multicast" in kinds else {}),
    )


async def send(*where: str) -> None:
    """Send a number to each topic every `PAUSE_SECONDS`."""
    async with AsyncExitStack() as stack:
        contexts = [await stack.enter_async_context(context(kinds, *where)) for kinds in RECEIVERS]
        sources = [await one.source(topic) for one, topic in zip(contexts, RECEIVERS, strict=True)]
        print("ready", flush=True)
        for number in range(10_000):
            for source in sources:
                await source.send(b"%d" % number)
            await asyncio.sleep(PAUSE_SECONDS)


async def receive(*where: str) -> None:
    """Print the name of each receiver that got consecutive numbers."""
    async with AsyncExitStack() as stack:
        kinds = dict.fromkeys(kind for receivers in RECEIVERS.values() for kind in receivers)
        contexts = {kind: await stack.enter_async_context(context(kind, *where)) for kind in kinds}
        print("ready", flush=True)
        async with asyncio.TaskGroup() as group:
            for topic, receivers in RECEIVERS.items():
                for kind in receivers:
                    group.create_task(_count(contexts[kind].receiver(topic), f"{topic} by {kind}"))


async def _count(receiver: Receiver, name: str) -> None:
    numbers: list[int] = []
    async for message in receiver:
        numbers.append(int(message.payload))
        if len(numbers) == MESSAGES:
            break
    assert numbers == list(range(numbers[0], numbers[0] + MESSAGES)), f"{name}: {numbers}"
    print(name, flush=True)


if __name__ == "__main__":
    asyncio.run((send if sys.argv[1] == "source" else receive)(*sys.argv[2:]))
