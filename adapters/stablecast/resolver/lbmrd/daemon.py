"""The relay (lbmrd) on a socket."""

import asyncio
import json
from collections.abc import Callable

import attrs

from stablecast.resolver.endpoint import RECEIVE_BUFFER, Endpoint
from stablecast.runtime import datagrams, machine
from stablecast.runtime.address import check_ip, join
from stablecast.runtime.line_budget import LineBudget
from stablecast.transports.resolution.udp.effects import RelayEffect, Remark
from stablecast.transports.resolution.udp.inputs import DatagramArrived
from stablecast.transports.resolution.udp.relay import SECRET_BYTES, UNPROVEN, VARIABLE, RelayConfig, RelayMachine

DEFAULT_PORT = 15_380
"""Port at which contexts expect an lbmrd."""

LogLine = Callable[[str], None]


class RelayDaemon:
    """A relay that serves until it is closed; `start` creates it."""

    def __init__(self, machine: RelayMachine, interface: str, log: LogLine, warn: LogLine) -> None:
        """Prepare the endpoint of a machine; `log` and `warn` get lines and must not raise."""
        self._machine = machine
        self._log = log
        self._log_client = LineBudget(log)
        self._warn = warn
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
        log: LogLine = lambda _: None,
        *,
        warn: LogLine | None = None,
        receive_buffer: int = RECEIVE_BUFFER,
        send_buffer: int = RECEIVE_BUFFER,
        report_every: float = 0,
    ) -> "RelayDaemon":
        """Start a relay on `interface`:`port` in the running loop; port 0 lets the system choose (see `port`).

        `log` gets lines, and `warn` those that an operator should read; without it, `log` gets both. Buffers are in
        bytes. Statistics are written to the log as JSON every `report_every` seconds; 0: never.

        Raises:
            AddressError: The interface is not an IPv4 address.
            PortError: This machine has no such interface, or the port is in use or forbidden.
        """
        sock = datagrams.bind(check_ip(interface), port, 0, receive_buffer, send_buffer)
        proven = machine.process.environment.get(VARIABLE) != UNPROVEN
        relay = RelayMachine(machine.entropy.octets(SECRET_BYTES), attrs.evolve(config or RelayConfig(), proven=proven))
        daemon = cls(relay, interface, log, warn or log)
        daemon.port = int(sock.getsockname()[1])
        daemon._endpoint.open(sock)
        if report_every:
            daemon._report_later(report_every)
        return daemon

    @property
    def address(self) -> str:
        """Return the address at which it listens, `ip:port`."""
        return join(self.interface, self.port)

    def statistics(self) -> dict[str, int]:
        """Return the number of clients, and the counters of received, forwarded and refused datagrams."""
        return self._endpoint.statistics()

    def clients(self) -> tuple[str, ...]:
        """Return the addresses of the known clients, longest silent first (T-213)."""
        return self._machine.clients()

    async def close(self) -> None:
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
        (self._warn if effect.warning else self._log_client)(effect.text)
