"""Attempts to join streams at a host: few at a time, and seldom while they fail.

A stranger may register any number of sources that nobody can join. Each is tried again and again, so without a bound
for their host they take all the time of a store.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

import attrs

AT_ONCE: Final = 32
"""Attempts at one host at a time."""

HOLD_SECONDS: Final = 0.5
"""Time for which an attempt that fails, or is made after one that failed, keeps its place."""


@attrs.define
class JoinAttempts:
    """The attempts of one event loop, by host. A host without any is not remembered."""

    _places: dict[str, asyncio.Semaphore] = attrs.field(factory=dict)
    _users: dict[str, int] = attrs.field(factory=dict)

    @asynccontextmanager
    async def place(self, host: str, *, failed: bool) -> AsyncIterator[None]:
        """Wait for a place, and have it in the body. `failed`: so did the attempt before."""
        places = self._places.setdefault(host, asyncio.Semaphore(AT_ONCE))
        self._users[host] = self._users.get(host, 0) + 1
        taken = False
        try:
            await places.acquire()
            taken = True
            try:
                yield
            except BaseException:
                failed = True
                raise
        finally:
            if taken and failed:
                asyncio.get_running_loop().call_later(HOLD_SECONDS, self._leave, host, True)
            else:
                self._leave(host, taken)

    def _leave(self, host: str, taken: bool) -> None:
        if taken:
            self._places[host].release()
        self._users[host] -= 1
        if not self._users[host]:
            del self._users[host], self._places[host]


_attempts: WeakKeyDictionary[asyncio.AbstractEventLoop, JoinAttempts] = WeakKeyDictionary()


def join_attempts() -> JoinAttempts:
    """Return the attempts of the running loop."""
    return _attempts.setdefault(asyncio.get_running_loop(), JoinAttempts())
