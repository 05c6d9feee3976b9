"""The stores of a context that are named by their host: looked up, and again whenever the store of an address is lost.

A host whose store moved has another address afterwards. Its sources move there, as with the name of a store (P-207).
"""

import asyncio
from collections.abc import Callable

from stablecast.client.advice import log
from stablecast.runtime import machine
from stablecast.runtime.address import AddressError
from stablecast.runtime.interfaces import resolved_place

RETRY_SECONDS = 1.0
"""Pause between two look-ups of a host, so that a store that is down does not ask the name service without end."""


class StoreHosts:
    """Look up the hosts of stores in threads; `locate(place, address)` is called for each new address of a place."""

    def __init__(self, locate: Callable[[str, str], None]) -> None:
        """Prepare a context without hosts."""
        self._locate = locate
        self._found: dict[str, str] = {}
        self._lost: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def ask(self, place: str) -> None:
        """Find the address of a place `host:port`, now and whenever it is lost."""
        if place not in self._lost:
            self._lost[place] = asyncio.Event()
            self._tasks.append(asyncio.get_running_loop().create_task(self._follow(place)))

    def lost(self, address: str) -> None:
        """Look the hosts of an address up again, because its connection broke."""
        for place, found in self._found.items():
            if found == address:
                self._lost[place].set()

    async def close(self) -> None:
        """Look nothing up any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, place: str) -> None:
        lost, reported = self._lost[place], ""
        while True:
            lost.clear()
            try:
                found = await machine.threads.call(resolved_place, place)
            except AddressError as error:
                if reported != str(error):
                    reported = str(error)
                    log.warning("a store is not found: %s", reported)
                lost.set()
            else:
                if self._found.get(place) != found:
                    self._found[place], reported = found, ""
                    self._locate(place, found)
            await asyncio.sleep(RETRY_SECONDS)
            await lost.wait()
