"""Numbered messages between sources and receivers of a network."""

from typing import Any

from stablecast.client import Context, Receiver, Source
from stablecast.core.protocol.messages import SourceInfo
from stablecast.transports import codec
from tests.support.network import Network

SESSION = 7


async def take(receiver: Receiver, count: int) -> list[int]:
    """So many messages, each consumed at once; their payloads are numbers."""
    numbers = []
    for _ in range(count):
        message = await anext(receiver)
        message.consumed()
        assert int(message.payload) == message.sequence_number
        numbers.append(message.sequence_number)
    return numbers


async def send(source: Source, count: int) -> None:
    """Send so many messages that say their number, until they are stable."""
    first = source.next_number
    await source.send_many([b"%d" % number for number in range(first, first + count)])
    await source.wait_stable_through(first + count - 1)


async def source_of(net: Network, *names: str, topic: str = "orders", **more: Any) -> tuple[Context, Source]:
    """A context with a source on it, and the stores it needs."""
    stores = [net.stores[name].address if name in net.stores else await net.store(name) for name in names]
    context = await net.context(session_id=SESSION)
    return context, await context.source(topic, stores=stores, **more)


def info(incarnation: int, topic: str = "orders") -> bytes:
    """The SRI of a streaming source that sends nothing again."""
    return codec.encode(
        SourceInfo(incarnation, topic, 1, 0, 0xFFFF_FFFF, "127.0.0.1:9", (), False, (), late_join=False)
    )
