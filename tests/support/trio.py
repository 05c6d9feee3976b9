"""Three stores with fixed addresses, of which some are away, and a source that all know or only some."""

from typing import Any, Final

import attrs

from stablecast.client import Context, Source
from tests.support.network import LOCAL, Network, drop, until, unused_port
from tests.support.traffic import SESSION, send

SOON: Final = {"ume_registration_interval": 100}
"""Options of a source that does not wait long for a store that is away."""


@attrs.define
class Trio:
    """Three stores with fixed addresses, which start and stop, and a source of them."""

    net: Network
    places: dict[str, str] = attrs.field(factory=lambda: {name: f"{LOCAL}:{unused_port()}" for name in "abc"})

    @property
    def stores(self) -> list[str]:
        return list(self.places.values())

    async def start(self, names: str) -> None:
        for name in names:
            await self.net.store(name, self.places[name])

    async def stop(self, names: str) -> None:
        for name in names:
            await self.net.stop(name)

    async def source(self, **options: Any) -> tuple[Context, Source]:
        context = await self.net.context(session_id=SESSION)
        return context, await context.source("orders", stores=self.stores, options=SOON | options)

    def newest(self, name: str) -> int:
        """Return the newest number that a store has synced; -1: none."""
        synced = (kept.synced.last for kept in self.net.stores[name].machine.status.repositories.values())
        return max((last for last in synced if last is not None), default=-1)

    async def synced(self, names: str, number: int) -> None:
        """Wait until each of these stores has synced a number, for a quorum of them makes it stable."""
        await until(lambda: all(self.newest(name) >= number for name in names))


async def known_to_one_of_two(net: Network) -> Trio:
    """Store messages at `a` and `c`; then `c` is away, and `b` never heard of the source."""
    trio = Trio(net)
    await trio.start("ac")
    owner, source = await trio.source()
    await send(source, 10)
    await owner.close()
    await trio.stop("c")
    await trio.start("b")
    return trio


async def dead_tail(net: Network) -> Trio:
    """Make `a` store 10 to 19, which were never stable, and `b` and `c` other messages under the numbers 10 to 24."""
    trio = Trio(net)
    await trio.start("abc")
    owner, source = await trio.source()
    await send(source, 10)
    await trio.stop("bc")
    for _ in range(10):
        source.try_send(b"never stable")
    await trio.synced("a", 19)
    await drop(owner)
    await trio.stop("a")
    await trio.start("bc")
    owner, source = await trio.source()
    await source.send_many([b"stable"] * 15)
    await source.wait_stable_through(24)
    await owner.close()
    return trio
