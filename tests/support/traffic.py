"""Messages with their numbers as payloads, between sources and receivers of a network."""

from typing import Any

from stablecast.client import Context, Receiver, Source, WildcardReceiver
from stablecast.core.protocol.messages import SourceInfo
from stablecast.transports import codec
from tests.support.network import Network

SESSION = 7


async def take(receiver: Receiver | WildcardReceiver, count: int) -> list[int]:
    """Receive and consume `count` messages; check the payloads and return the numbers."""
    numbers = []
    for _ in range(count):
        message = await anext(receiver)
        message.consumed()
        assert int(message.payload) == message.sequence_number
        numbers.append(message.sequence_number)
    return numbers


async def send(source: Source, count: int) -> None:
    """Send `count` messages with their numbers as payloads, and wait until they are stable."""
    first = source.next_number
    await source.send_many([b"%d" % number for number in range(first, first + count)])
    await source.wait_stable_through(first + count - 1)


async def source_of(net: Network, *names: str, topic: str = "orders", **more: Any) -> tuple[Context, Source]:
    """Open a context and a source, and start the stores that are missing."""
    stores = [net.stores[name].address if name in net.stores else await net.store(name) for name in names]
    context = await net.context(session_id=SESSION)
    return context, await context.source(topic, stores=stores, **more)


def info(incarnation: int, topic: str = "orders") -> bytes:
    """Return the encoded SRI of a streaming source without late join."""
    return codec.encode(
        SourceInfo(incarnation, topic, 1, 0, 0xFFFF_FFFF, "127.0.0.1:9", (), False, (), late_join=False)
    )
