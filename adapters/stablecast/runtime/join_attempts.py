"""Attempts to join streams at a host: few at a time, and seldom while they fail.

A stranger may register any number of sources that nobody can join. Each is tried again and again, so without a bound
for their host they take all the time of a store.
"""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

import attrs

AT_ONCE: Final = 32
"""Attempts at one host at a time."""

HOLD_SECONDS: Final = 0.5
"""Time for which an attempt keeps its place if it fails, or if it follows one that failed and nothing comes."""


@attrs.define(eq=False)
class Place:
    """The place of one attempt, until it is left."""

    _attempts: "JoinAttempts"
    _host: str
    _left: bool = False

    def hold(self) -> None:
        """Leave it in a while."""
        asyncio.get_running_loop().call_later(HOLD_SECONDS, self.leave)

    def leave(self) -> None:
        """Let the next attempt begin, if the place was not left before."""
        if not self._left:
            self._left = True
            self._attempts.end(self._host, taken=True)


@attrs.define
class JoinAttempts:
    """The attempts of one event loop, by host. A host without any is not remembered."""

    _places: dict[str, asyncio.Semaphore] = attrs.field(factory=dict)
    _users: dict[str, int] = attrs.field(factory=dict)

    async def take(self, host: str) -> Place:
        """Wait for a place, and return it."""
        places = self._places.setdefault(host, asyncio.Semaphore(AT_ONCE))
        self._users[host] = self._users.get(host, 0) + 1
        try:
            await places.acquire()
        except BaseException:
            self.end(host, taken=False)
            raise
        return Place(self, host)

    def end(self, host: str, *, taken: bool) -> None:
        """Count an attempt no more, which has `taken` a place or waited for one in vain."""
        if taken:
            self._places[host].release()
        self._users[host] -= 1
        if not self._users[host]:
            del self._users[host], self._places[host]


_attempts: WeakKeyDictionary[asyncio.AbstractEventLoop, JoinAttempts] = WeakKeyDictionary()


def join_attempts() -> JoinAttempts:
    """Return the attempts of the running loop."""
    return _attempts.setdefault(asyncio.get_running_loop(), JoinAttempts())
