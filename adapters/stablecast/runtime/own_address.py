"""The address of a context's host, followed: hosts get another one by DHCP, a VPN, or a container network.

The address is chosen anew by the rule that chose it, once the host has it no more, or once the relays stay silent and
another one faces them. An address that the application named is never replaced by another.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import attrs

from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.runtime.interfaces import LOOPBACK, has_address

log = logging.getLogger("stablecast")

LOOK_SECONDS = 2.0
"""Seconds between two looks at the addresses of the host."""


@attrs.define(eq=False)
class OwnAddress:
    """Look at intervals whether the host still has `address`.

    `choose` returns the address to use now, in a thread; `move` goes there. `silent` tells that no relay answers.
    """

    address: str
    _choose: Callable[[], str]
    _move: Callable[[str], Awaitable[None]]
    _silent: Callable[[], bool]
    _reported: str = ""
    _task: "asyncio.Task[None] | None" = None

    def follow(self) -> None:
        """Begin to look; a loopback address never leaves."""
        if not self.address.startswith("127."):
            self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def look(self) -> None:
        """Move if the address has left the host, or if the relays are silent there, and another one can be used."""
        left = not has_address(self.address)
        if not left and not self._silent():
            self._reported = ""
            return
        try:
            found = await machine.threads.call(self._choose)
        except (StablecastError, OSError) as error:  # Also without a free descriptor: the next look may have one.
            found, why = self.address, str(error)
        else:
            why = "it waits until the address returns"
        # Without a route the choice is the loopback address, at which no other host is reached.
        if found in (self.address, LOOPBACK) or not has_address(found):
            if left:
                self._report(f"this host no longer has {self.address}, at which others reach this context: {why}")
            return
        before, self.address = self.address, found
        try:
            await self._move(found)
        except (StablecastError, OSError) as error:
            self.address = before
            self._report(f"this context cannot move from {before} to {found}, and tries again: {error}")
            return
        because = f"this host no longer has {before}" if left else f"no relay answers at {before}"
        self._report(f"{because}: others reach this context at {found} now")

    def _report(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            log.warning("%s", text)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()
