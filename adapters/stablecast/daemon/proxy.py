"""Proxies: sources that stand in for those that are gone, so that receivers can register and recover (P-540).

A proxy is a source like any other, with a context, a life and a stream of its own; it sends nothing but announcements.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from stablecast.client.context import Context
from stablecast.core.effects import StartProxy
from stablecast.core.errors import StablecastError
from stablecast.core.quorum import GroupRules
from stablecast.core.settings import SourceConfig, StoreSpec


def proxy_config(effect: StartProxy) -> SourceConfig:
    """The source that a store is asked to be; whoever hosts it fills in its life and its addresses.

    A session id stands for the RegIDs, then none is asked for.
    """
    stores = sorted(effect.stores, key=lambda store: store.index)
    return SourceConfig(
        effect.topic,
        0,
        "",
        "",
        tuple(
            StoreSpec(store.address, 0 if effect.session_id else store.source_reg_id, store.group) for store in stores
        ),
        GroupRules(effect.group_sizes),
        session_id=effect.session_id,
        election=effect.election,
    )


class Proxies:
    """The proxies of one store, by the RegID of the source there."""

    def __init__(
        self, interface: str, resolver: Sequence[str], trace: Path | None, on_failed: Callable[[int, Exception], None]
    ) -> None:
        """None runs. `on_failed` is told the source and why its proxy could not be started."""
        self._interface = interface
        self._resolver = resolver
        self._trace = trace
        self._on_failed = on_failed
        self._running: dict[int, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many run."""
        return len(self._running)

    def start(self, effect: StartProxy) -> None:
        """Stand in for a source."""
        self.stop(effect.source_reg_id)
        task = asyncio.get_running_loop().create_task(self._stand_in(effect))
        self._running[effect.source_reg_id] = task

    def stop(self, source_reg_id: int) -> None:
        """Stand in no more; does nothing when nobody does."""
        task = self._running.pop(source_reg_id, None)
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End them all, and wait until nothing is left running."""
        for source_reg_id in list(self._running):
            self.stop(source_reg_id)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _stand_in(self, effect: StartProxy) -> None:
        try:
            context = Context(resolver=self._resolver, interface=self._interface, trace=self._trace)
            async with context:
                await context.host(proxy_config(effect))
                await asyncio.get_running_loop().create_future()  # Until it is cancelled.
        except StablecastError as error:
            self._running.pop(effect.source_reg_id, None)
            self._on_failed(effect.source_reg_id, error)
