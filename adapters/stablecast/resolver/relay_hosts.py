"""The relays that are named by their host: looked up again while they are silent.

A relay that moved has another address afterwards. The machine knows each relay by its first address, so the endpoint
sends to the new address under the old one.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from stablecast.resolver.endpoint import Endpoint
from stablecast.runtime import machine
from stablecast.runtime.address import AddressError
from stablecast.runtime.interfaces import resolved_place

LOOK_SECONDS = 5.0
"""Time between two looks at the relays, and silence after which the host of a relay is looked up again."""


class RelayHosts:
    """Look up the hosts of silent relays, in threads, on the running loop."""

    def __init__(
        self, places: Mapping[str, str], endpoint: Endpoint[Any, Any], remark: Callable[[str, bool], None]
    ) -> None:
        """Follow relays, by `host:port`, with the address `ip:port` that each has now."""
        self._first = dict(places)
        self._found = dict(places)
        self._endpoint = endpoint
        self._remark = remark
        self._task: asyncio.Task[None] | None = None
        if places:
            endpoint.watch(list(places.values()))
            self._task = asyncio.get_running_loop().create_task(self._follow())

    def close(self) -> None:
        """Look nothing up any more."""
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for relay, first in self._first.items():
                if not self._endpoint.heard_within(first, LOOK_SECONDS):
                    with suppress(AddressError):  # The last address stays in use.
                        await self._look_up(relay, first)

    async def _look_up(self, relay: str, first: str) -> None:
        found = await machine.threads.call(resolved_place, relay)
        if found != self._found[relay]:
            self._found[relay] = found
            self._endpoint.move(first, found)
            self._remark(f"relay {relay} has the address {found} now", False)
