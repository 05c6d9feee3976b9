"""Tell the service manager how a daemon does, by the datagrams of sd_notify(3).

systemd gives a unit of `Type=notify` a socket in NOTIFY_SOCKET, and in WATCHDOG_USEC the time after which it restarts a
unit that is silent. Without these variables nothing is sent. A service manager that cannot be reached is no reason to
stop: the daemon then runs as if it had none.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import attrs

from stablecast.core.machine.units import MICROSECOND, SECOND
from stablecast.runtime import machine

STATUS_LENGTH = 200
"""Most characters of a status that are sent. Service managers show it in one line."""

SIGNS_IN_TIMEOUT = 3
"""Number of signs of life that are sent in the watchdog's time, so that one may be late."""

GRACE_SECONDS = 10
"""Time by which a start is extended beyond a known wait, for what follows the wait."""


async def _turn() -> None:
    await asyncio.sleep(0)


@attrs.frozen
class ServiceManager:
    """Send the states of a daemon to the service manager at `place`; an empty place has none."""

    place: str
    watchdog_ns: int

    @classmethod
    def of_environment(cls) -> "ServiceManager":
        environment = machine.process.environment
        watchdog = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", "") in ("", str(machine.process.pid()))
        watchdog_ns = int(watchdog) * MICROSECOND if watchdog.isdecimal() and mine else 0
        return cls(environment.get("NOTIFY_SOCKET", ""), watchdog_ns)

    @asynccontextmanager
    async def serving(
        self, status: str, alive: Callable[[], Awaitable[object]] = _turn, wait_seconds: float = 0
    ) -> AsyncIterator[None]:
        """Report that the daemon is ready, that it lives, and at the end of the context that it stops.

        Args:
            status: The line that people read while the daemon is ready.
            alive: Awaited before each sign of life. It hangs if the daemon does.
            wait_seconds: Time until the daemon serves. It is not ready before, and asks for this time.
        """
        reporting = asyncio.create_task(self._report(status, alive, wait_seconds))
        try:
            yield
        finally:
            reporting.cancel()
            with suppress(asyncio.CancelledError):
                await reporting
            self._send("STOPPING=1", _status("stops"))

    async def _report(self, status: str, alive: Callable[[], Awaitable[object]], wait_seconds: float) -> None:
        if wait_seconds:
            extended = round((wait_seconds + GRACE_SECONDS) * SECOND) // MICROSECOND
            self._send(_status(f"serves in {wait_seconds:.0f} s"), f"EXTEND_TIMEOUT_USEC={extended}")
            await asyncio.sleep(wait_seconds)
        self._send("READY=1", _status(status))
        while self.place and self.watchdog_ns:
            await alive()
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_ns / SECOND / SIGNS_IN_TIMEOUT)

    def _send(self, *lines: str) -> None:
        if self.place:
            with suppress(OSError):
                machine.process.notify(self.place, "\n".join(lines).encode())


def _status(text: str) -> str:
    return "STATUS=" + text.replace("\n", " ")[:STATUS_LENGTH]
