"""A host that speaks for others: nothing counts that a source, a receiver or a store hears from it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs

from stablecast.client import Context, NotStableYet
from stablecast.core.protocol.messages import (
    Address,
    Deregister,
    Incarnation,
    Message,
    Refusal,
    Refused,
    Registered,
    Role,
    StableAck,
)
from stablecast.runtime.address import parse
from stablecast.testing import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world
from stablecast.transports import codec
from tests.support.retransmissions import encode_recovered

SENT = 5


@attrs.define
class Secrets:
    """What every receiver of the topic learns, and what happened."""

    life: Incarnation = 0
    source: Address = ""
    receiver: Address = ""
    stable: bool = False
    oddities: dict[str, int] = attrs.field(factory=dict)
    kept: list[bytes] | None = None
    got: list[bytes] = attrs.field(factory=list)
    begun: bool = False
    forged: bool = False
    stopped: bool = False
    sent: bool = False
    over: bool = False


async def when(condition: Callable[[], bool]) -> None:
    """Wait, in virtual time."""
    while not condition():  # noqa: ASYNC110  # an event belongs to one program
        await asyncio.sleep(0.1)


async def sell(stores: list[str], secrets: Secrets, **context: Any) -> None:
    """Send messages, and one that no store gets before the forger has spoken."""
    async with Context(session_id=1, **context) as shop:
        source = await shop.source("orders", stores=stores)
        for number in range(SENT):
            await (await source.send(b"%d" % number)).stable()
        secrets.life, secrets.source = source.config.incarnation, shop.request_address
        secrets.begun = True
        await when(lambda: secrets.stopped)
        sent = await source.send(b"%d" % SENT)
        secrets.sent = True
        with suppress(NotStableYet):
            await sent.stable(timeout=3)
            secrets.stable = True
        secrets.oddities.update(shop.oddities)
        secrets.over = True
        await asyncio.Event().wait()


async def book(secrets: Secrets, **context: Any) -> None:
    async with Context(session_id=2, **context) as desk:
        secrets.receiver = desk.request_address
        async for message in desk.receiver("orders"):
            secrets.got.append(message.payload)  # the test looks at it meanwhile


async def tell(place: Address, messages: list[bytes]) -> None:
    _, writer = await asyncio.open_connection(*parse(place))
    writer.write(b"".join(messages))
    await writer.drain()
    await asyncio.sleep(1)
    writer.close()


async def forge(store: Address, secrets: Secrets) -> None:
    """Speak for the store, and for the source."""
    life, reg_id = secrets.life, 77
    for_source: list[Message] = [
        StableAck(0, life, SENT, SENT),
        Refused(Role.SOURCE, 0, 1, reg_id, life, Refusal.NO_PATTERN),
        Registered(Role.SOURCE, 0, 1, reg_id, life, False, 0, 100, 1000, 1000),
    ]
    again = codec.Recovered(life, life, SENT, b"forged")
    await tell(secrets.source, [codec.encode(message) for message in for_source])
    await tell(secrets.receiver, [encode_recovered(again)])
    for reply_to in (secrets.source, store):
        await tell(store, [codec.encode(Deregister(Role.SOURCE, 0, 0, 1, life, 0, reply_to)), encode_recovered(again)])
    secrets.forged = True


async def audit(stores: list[str], secrets: Secrets, **context: Any) -> None:
    """Read what the store holds."""
    async with Context(**context) as office, office.reader("orders", stores=stores, new=True) as reader:
        secrets.kept = [message.payload async for message in reader]


async def acknowledge(secrets: Secrets) -> None:
    await tell(secrets.source, [codec.encode(StableAck(0, secrets.life, SENT, SENT))])


def test_nothing_counts_that_another_host_says() -> None:
    secrets = Secrets()

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, secrets, host="shop", **world.context_of("shop"))
        world.start(book, secrets, host="desk", **world.context_of("desk"))
        await world.until(lambda: secrets.begun and len(secrets.got) == SENT)
        world.start(forge, world.stores[0], secrets, host="stranger")
        await when(lambda: secrets.forged)
        world.start(audit, world.stores, secrets, host="office", **world.context_of("office"))
        await when(lambda: secrets.kept is not None)
        world.crash("store0", down=None)
        secrets.stopped = True
        await when(lambda: secrets.sent)
        world.start(acknowledge, secrets, host="stranger")
        await when(lambda: secrets.over)

    outcome = run_world(WorldSetting(stores=1), body, 1, ())
    assert outcome.failure is None
    assert secrets.kept == [b"%d" % number for number in range(SENT)]
    assert not secrets.stable
    assert secrets.got == [b"%d" % number for number in range(SENT + 1)]
    assert all(secrets.oddities.get(f"foreign-{kind}") for kind in ("StableAck", "Refused", "Registered"))
