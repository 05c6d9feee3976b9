"""A proxy between two relays: it repeats a source under names of its own, as a router does, with the source's OTID."""

import asyncio
from typing import Any

import attrs

from stablecast.resolver import Listeners, RelayDaemon, Resolver
from stablecast.runtime import ports
from stablecast.runtime.stream import Item, StreamJoiner, StreamServer
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.codec.renamed import renamed
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.inputs import AddSource
from tests.support.network import LOCAL, Network

INDEX = 0x7777


@attrs.define(eq=False)
class Proxy:
    """One source of a topic, found at one relay and repeated at another; `place` is where it is repeated."""

    session: int
    cost: int
    server: StreamServer
    place: str
    hither: Resolver
    thither: Resolver
    origin: SourceRecord
    joiner: StreamJoiner = attrs.field(init=False)
    announcement: bytes = b""

    def __attrs_post_init__(self) -> None:
        source = self.origin
        self.joiner = StreamJoiner(source.address, source.session_id, self.repeat, lambda _: None)

    def greeting(self) -> bytes:
        """Return what a joiner gets first."""
        return codec.greeting(self.session) + self.announcement

    def repeat(self, _: int, items: list[Item]) -> None:
        for item in items:
            octets = renamed(item, self.session, INDEX)
            if not isinstance(item, Run):
                self.announcement = octets
            self.server.write(octets)

    def advertise(self, topic: str) -> None:
        """Let receivers on the other side find it."""
        request, persistent = self.origin.request_address, self.origin.persistent
        self.thither.add_source(
            AddSource(
                topic,
                self.place,
                self.session,
                INDEX,
                request,
                persistent,
                origin=self.origin.origin,
                cost=self.cost,
                hops=1,
            )
        )

    async def fail(self) -> None:
        """Repeat the source no more, but go on to advertise it."""
        await self.joiner.close()
        await self.server.close()

    async def close(self) -> None:
        """End, as a router that is stopped."""
        self.thither.remove_source(self.session, INDEX)
        await self.fail()
        await self.hither.close()
        await self.thither.close()


async def proxy(net: Network, there: RelayDaemon, topic: str = "orders", session: int = 5, cost: int = 1) -> Proxy:
    """Find a source of a topic at the network's relay, and repeat it for those that use the relay `there`."""
    found: asyncio.Queue[SourceRecord] = asyncio.Queue()
    hither = await Resolver.start(LOCAL, [net.relays[0].address], Listeners(lambda _, record: found.put_nowait(record)))
    thither = await Resolver.start(LOCAL, [there.address], Listeners(lambda *_: None))
    hither.add_receiver(topic)
    listening = ports.listen_in_range(LOCAL, (0, 0))
    server = StreamServer(listening, bytes)
    await server.start()
    place = f"{LOCAL}:{listening.getsockname()[1]}"
    made = Proxy(session, cost, server, place, hither, thither, await found.get())
    server.greet = made.greeting
    net.stack.push_async_callback(made.close)
    made.advertise(topic)
    return made


async def relay(net: Network) -> RelayDaemon:
    """Start the relay of a second domain."""
    there = await RelayDaemon.start(LOCAL, 0)
    net.stack.push_async_callback(there.close)
    return there


async def receiving(net: Network, *relays: RelayDaemon, **arguments: Any) -> Any:
    """Open a context that uses other relays than that of the network."""
    from stablecast.client import Context  # noqa: PLC0415

    where = [one.address for one in relays]
    return await net.stack.enter_async_context(Context(resolver=where, **arguments))
