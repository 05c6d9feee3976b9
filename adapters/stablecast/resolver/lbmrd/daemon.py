"""The relay (lbmrd) on a socket."""

import asyncio
import errno
import json
import os
from collections.abc import Callable

from stablecast.resolver.endpoint import RECEIVE_BUFFER, Endpoint, bind
from stablecast.runtime.address import check_ip, join
from stablecast.runtime.resolver_error import ResolverError
from stablecast.transports.resolution.records import INSTANCE_BYTES
from stablecast.transports.resolution.udp.effects import RelayEffect, Remark
from stablecast.transports.resolution.udp.inputs import DatagramArrived
from stablecast.transports.resolution.udp.relay import RelayConfig, RelayMachine

DEFAULT_PORT = 15_380
"""Where contexts look for an lbmrd."""

Log = Callable[[str], None]


def _unheard(_: str) -> None:
    """Nobody reads the log."""


class RelayDaemon:
    """A relay that serves until it is closed. Made by `start`."""

    def __init__(self, machine: RelayMachine, interface: str, log: Log) -> None:
        """Drives a machine once it is opened; `log` gets lines and must not raise."""
        self._machine = machine
        self._log = log
        self._endpoint: Endpoint[DatagramArrived, RelayEffect] = Endpoint(machine, self._on_effect)
        self._report: asyncio.TimerHandle | None = None
        self.interface = interface
        self.port = 0

    @classmethod
    async def start(
        cls,
        interface: str,
        port: int = DEFAULT_PORT,
        config: RelayConfig | None = None,
        log: Log = _unheard,
        *,
        receive_buffer: int = RECEIVE_BUFFER,
        send_buffer: int = RECEIVE_BUFFER,
        report_every: float = 0,
    ) -> "RelayDaemon":
        """Starts a relay on `interface`:`port` (0: any port that is free, see `port`) in the running loop.

        Buffers are in bytes. Statistics are written to the log as JSON every `report_every` seconds; 0: never.

        Raises:
            AddressError: If the interface is not an IPv4 address.
            ResolverError: If this machine has no such interface, or the port is in use or forbidden.
        """
        try:
            sock = bind(check_ip(interface), (port,), receive_buffer, send_buffer)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            remedy = f"port {port} on {interface} is in use: stop the other lbmrd or choose another port"
            raise ResolverError(remedy) from error
        daemon = cls(RelayMachine(os.urandom(INSTANCE_BYTES), config or RelayConfig()), interface, log)
        daemon.port = int(sock.getsockname()[1])
        daemon._endpoint.open(sock)
        if report_every:
            daemon._report_later(report_every)
        return daemon

    @property
    def address(self) -> str:
        """Where it listens, `ip:port`."""
        return join(self.interface, self.port)

    def statistics(self) -> dict[str, int]:
        """Clients now, and what was received, forwarded, and refused so far."""
        return self._endpoint.statistics()

    def clients(self) -> tuple[str, ...]:
        """Who is known, longest silent first (T-213)."""
        return self._machine.clients()

    async def close(self) -> None:
        """Stops serving."""
        if self._report is not None:
            self._report.cancel()
        await self._endpoint.close()

    def _report_later(self, seconds: float) -> None:
        def report() -> None:
            self._log(f"statistics {json.dumps(self.statistics())}")
            self._report_later(seconds)

        self._report = asyncio.get_running_loop().call_later(seconds, report)

    def _on_effect(self, effect: RelayEffect) -> None:
        assert isinstance(effect, Remark)
        self._log(f"warning: {effect.text}" if effect.warning else effect.text)
