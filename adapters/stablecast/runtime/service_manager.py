"""Tell the service manager how a daemon does, by the datagrams of sd_notify(3).

systemd gives a unit of `Type=notify` a socket in NOTIFY_SOCKET, and in WATCHDOG_USEC the time after which it restarts a
unit that is silent. Without these variables nothing is sent. A service manager that cannot be reached is no reason to
stop: the daemon then runs as if it had none.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import attrs

from stablecast.core.machine.units import MICROSECOND, SECOND
from stablecast.runtime import machine

STATUS_LENGTH = 200
"""Most characters of a status that are sent. Service managers show it in one line."""

SIGNS_IN_TIMEOUT = 3
"""Number of signs of life that are sent in the watchdog's time, so that one may be late."""

GRACE_SECONDS = 10
"""Time by which a start is extended beyond a known wait, for what follows the wait."""


@attrs.frozen
class ServiceManager:
    """Send the states of a daemon to the service manager at `place`; an empty place has none."""

    place: str
    watchdog_ns: int

    @classmethod
    def of_environment(cls) -> "ServiceManager":
        """Return the service manager that the environment names."""
        environment = machine.process.environment
        watchdog = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", "") in ("", str(machine.process.pid()))
        watchdog_ns = int(watchdog) * MICROSECOND if watchdog.isdecimal() and mine else 0
        return cls(environment.get("NOTIFY_SOCKET", ""), watchdog_ns)

    def ready(self, status: str) -> None:
        """Report that the daemon serves."""
        self._send("READY=1", _status(status))

    def waiting(self, status: str, seconds: float) -> None:
        """Report that the daemon runs and serves only after `seconds`, and ask for that time."""
        extended = round((seconds + GRACE_SECONDS) * SECOND) // MICROSECOND
        self._send(_status(status), f"EXTEND_TIMEOUT_USEC={extended}")

    def stopping(self) -> None:
        """Report that the daemon ends."""
        self._send("STOPPING=1", _status("stops"))

    async def keep_alive(self, alive: Callable[[], Awaitable[object]]) -> None:
        """Send signs of life for ever, each after `alive` has ended. Return at once if nobody watches."""
        if not (self.place and self.watchdog_ns):
            return
        while True:
            await alive()
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_ns / SECOND / SIGNS_IN_TIMEOUT)

    def _send(self, *lines: str) -> None:
        if self.place:
            with contextlib.suppress(OSError):
                machine.process.notify(self.place, "\n".join(lines).encode())


def _status(text: str) -> str:
    return "STATUS=" + text.replace("\n", " ")[:STATUS_LENGTH]
