"""Sources and receivers that meet by each kind of resolution and by pairs of kinds, a process of each.

    python -m tests.support.meeting source IP PORT RELAY SERVICE    send, until killed
    python -m tests.support.meeting receiver IP PORT RELAY SERVICE  a line for each receiver that got data, then the end

A topic is called by the kinds that its source uses, a receiver by those that its context uses. The group is heard
at `PORT` on the interface `IP`.
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
"""The receivers of each topic. With a relay there is no multicast (T-008)."""

MESSAGES = 3
"""What a receiver gets until it is content."""

PAUSE_SECONDS = 0.02


def context(kinds: str, interface: str, port: str, relay: str, service: str) -> Context:
    """A context that uses these kinds."""
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
    """Sends a number every now and then to each topic."""
    async with AsyncExitStack() as stack:
        contexts = [await stack.enter_async_context(context(kinds, *where)) for kinds in RECEIVERS]
        sources = [await one.source(topic) for one, topic in zip(contexts, RECEIVERS, strict=True)]
        print("ready", flush=True)
        for number in range(10_000):
            for source in sources:
                await source.send(b"%d" % number)
            await asyncio.sleep(PAUSE_SECONDS)


async def receive(*where: str) -> None:
    """Tells of each receiver that got consecutive numbers."""
    async with AsyncExitStack() as stack:
        kinds = dict.fromkeys(kind for receivers in RECEIVERS.values() for kind in receivers)
        contexts = {kind: await stack.enter_async_context(context(kind, *where)) for kind in kinds}
        print("ready", flush=True)
        async with asyncio.TaskGroup() as group:
            for topic, receivers in RECEIVERS.items():
                for kind in receivers:
                    group.create_task(_take(contexts[kind].receiver(topic), f"{topic} by {kind}"))


async def _take(receiver: Receiver, name: str) -> None:
    numbers: list[int] = []
    async for message in receiver:
        numbers.append(int(message.payload))
        if len(numbers) == MESSAGES:
            break
    assert numbers == list(range(numbers[0], numbers[0] + MESSAGES)), f"{name}: {numbers}"
    print(name, flush=True)


if __name__ == "__main__":
    asyncio.run((send if sys.argv[1] == "source" else receive)(*sys.argv[2:]))
