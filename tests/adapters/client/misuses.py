"""The ways to hold the client wrong, and what the cases of all of them share."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from stablecast.client import (
    Context,
    Receiver,
    Source,
)
from stablecast.client.loop_ownership import OPEN
from tests.support.misuse import Misuses
from tests.support.network import Network

ELSEWHERE = (
    "belongs to the event loop that made it: call it there (loop.call_soon_threadsafe), use stablecast.sync from "
    "threads, and make another context in another loop or process"
)

MISUSES = Misuses()
refused, right = MISUSES.refused, MISUSES.right


async def source_of(net: Network, **arguments: Any) -> Source:
    return await (await net.context(session_id=7)).source("orders", stores=[await net.store()], **arguments)


async def pair(net: Network, count: int, **arguments: Any) -> tuple[Source, Receiver]:
    """Return a source that has sent stable messages 0, 1, ..., and a receiver of them."""
    source = await source_of(net)
    if count:
        await source.send_many([b"%d" % number for number in range(count)])
        await source.wait_stable_through(count - 1)
    return source, (await net.context(session_id=9)).receiver("orders", **arguments)


def context_of(one: Source | Receiver) -> Context:
    contexts = [context for context in OPEN if isinstance(context, Context)]
    return next(context for context in contexts if one in (*context._sources.values(), *context._receivers.values()))


def in_a_loop(call: Callable[[], Coroutine[Any, Any, object]]) -> Callable[[], object]:
    return lambda: asyncio.run(call())
