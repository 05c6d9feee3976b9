"""The resolution service (SRS) on sockets."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import assert_never

from stablecast.resolver.srs.config import SrsConfig
from stablecast.resolver.srs.statistics import ServiceStatistics
from stablecast.runtime import machine, ports, tls_server
from stablecast.runtime.address import join_any
from stablecast.runtime.driver import UntracedDriver, describe, report
from stablecast.runtime.line_budget import LineBudget
from stablecast.runtime.origins import Origin, Origins
from stablecast.runtime.policy import READERS, SENDERS, Right, Rights
from stablecast.runtime.ports import prepare
from stablecast.transports.resolution.srs import events
from stablecast.transports.resolution.srs.service import Admission, ResolutionService
from stablecast.transports.resolution.srs.settings import MAX_CLIENTS
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.wire import srs

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes that may wait for one slow client; beyond that it is disconnected and logged, and may connect again."""


class SrsConnection(asyncio.Protocol):
    def __init__(self, daemon: "SrsDaemon", number: int) -> None:
        self._daemon = daemon
        self._number = number

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        prepare(transport)
        self._daemon.on_made(self._number, transport, join_any(*transport.get_extra_info("peername")[:2]))

    def data_received(self, data: bytes) -> None:
        self._daemon.feed(events.BytesReceived(self._number, data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._daemon.on_lost(self._number)


FIRST_BYTES_SECONDS = 30.0
"""Seconds within which a new connection must have sent something. Clients register at once."""


MAX_UNHEARD = 1_024
"""Connections that have sent nothing yet; one more ends the oldest. Those of clients are not among them for long."""


class SrsDaemon:
    """A service that serves until it is closed; `start` creates it. `address` is its listening address, `ip:port`."""

    def __init__(
        self, config: SrsConfig, log: Callable[[str], None], warn: Callable[[str], None] | None = None
    ) -> None:
        """Drive a machine in the running loop; `log` and `warn` (default: `log`) get lines and must not raise."""
        self.address = ""
        self.config = config
        self.slow = 0
        self._log = log
        self._log_client = LineBudget(log)
        self._warn = warn or log
        epoch = machine.entropy.below((1 << 32) - 1) + 1
        self._machine = ResolutionService(epoch, config.service(), Admission(self._admits))
        self._origins = Origins()
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._peers: dict[int, asyncio.Transport] = {}
        self._server: ports.Server | None = None
        self._closed = False
        self._driver: UntracedDriver[events.ServiceInput, events.ServiceEffect] = UntracedDriver(
            self._machine, self._perform, self._on_failed
        )
        self._report: asyncio.TimerHandle | None = None
        self._reported: dict[str, int] = {}
        self._peer_of: dict[int, str] = {}
        self._unheard: dict[int, asyncio.TimerHandle] = {}
        self.details = ServiceStatistics(self._machine, config)
        self._empty = asyncio.Event()
        self._empty.set()

    @classmethod
    async def start(
        cls, config: SrsConfig, log: Callable[[str], None], warn: Callable[[str], None] | None = None
    ) -> "SrsDaemon":
        """Start a service in the running loop.

        `log` gets lines, and `warn` those that an operator should read; without it, `log` gets both.

        Raises:
            PortError: It cannot listen at the configured address.
        """
        daemon = cls(config, log, warn)
        listening = ports.listen(config.interface.strip("[]"), config.port, "port or interface")
        daemon._server = await tls_server.server(lambda: SrsConnection(daemon, next(daemon._numbers)), listening)
        await daemon._server.start_serving()
        daemon.address = join_any(*daemon._server.sockets[0].getsockname()[:2])
        if config.publishing_interval and not config.monitor.topic:
            daemon._report_later()
        return daemon

    def statistics(self) -> dict[str, int]:
        """Return the counters of the machine.

        `slow` counts clients that were disconnected for not reading, `barred-ROLE` records that the policy ignored.
        """
        return {**self._machine.counters(), "slow": self.slow, **self._origins.oddities}

    async def close(self) -> None:
        """Stop serving and close all connections; clients connect again to the next service at this address."""
        self._closed = True
        self._driver.close()
        if self._report is not None:
            self._report.cancel()
        if self._server is not None:
            await ports.close(self._server)
        for transport in self._peers.values():
            transport.abort()
        await self._empty.wait()

    def feed(self, event: events.ServiceInput) -> None:
        """Feed one input to the machine and perform its effects; do nothing once closed."""
        if isinstance(event, events.BytesReceived) and (limit := self._unheard.pop(event.connection, None)) is not None:
            limit.cancel()
        self._driver.feed(event)

    def on_made(self, number: int, transport: asyncio.Transport, address: str) -> None:
        """Keep a connection that was made, and feed it to the machine."""
        scarce = not ports.has_room()
        if self._closed or (scarce and not self._unheard):
            transport.abort()  # A client that was accepted just before the end arrives here after it.
        self._peers[number] = transport
        self._empty.clear()
        self._peer_of[number] = address
        self.details.event("connect", address)
        if len(self._peers) > MAX_CLIENTS:
            self._make_room(address)
        if self._unheard and (scarce or len(self._unheard) >= MAX_UNHEARD):
            self._end_unheard(next(iter(self._unheard)))
        self._unheard[number] = self._loop.call_later(FIRST_BYTES_SECONDS, self._end_unheard, number)
        self.feed(events.ConnectionAccepted(number, address))

    def on_lost(self, number: int) -> None:
        """Forget a connection that is over, and feed its end to the machine."""
        del self._peers[number]
        if (limit := self._unheard.pop(number, None)) is not None:
            limit.cancel()
        self.details.event("disconnect", self._peer_of.pop(number, ""))
        if not self._peers:
            self._empty.set()
        self.feed(events.ConnectionClosed(number))

    def _make_room(self, newcomer: str) -> None:
        """End the last connection of a host that has most of the places. The newcomer comes again soon."""
        crowd = ports.crowding_host(map(_host, self._peer_of.values()), _host(newcomer))
        for number, address in reversed(self._peer_of.items()) if crowd is not None else ():
            if _host(address) == crowd:
                self._abort(number)
                return

    def _end_unheard(self, number: int) -> None:
        """End a connection that never said anything, so that port scanners take no places."""
        self._unheard.pop(number).cancel()
        self._abort(number)

    def _report_later(self) -> None:
        """Log statistics at intervals (T-421): all counters the first time, then those that changed."""

        def report() -> None:
            statistics = self.statistics()
            changed = {name: value for name, value in statistics.items() if self._reported.get(name) != value}
            self._reported = statistics
            self._log(f"statistics {json.dumps(changed)}")
            self._report_later()

        self._report = self._loop.call_later(self.config.publishing_interval / 1_000, report)

    def _admits(self, connection: int, message: srs.Message) -> bool:
        """Return whether the policy lets a client say this. What ends a record of its own always counts."""
        rights: Rights
        topic: str | None
        match message:
            case srs.SourceInfo() if message.cost != srs.ENDED:
                rights, topic = SENDERS, message.topic
            case srs.ReceiverInfo():
                rights, topic = READERS, message.name
            case srs.PatternInfo():
                rights, topic = READERS, None  # It learns names of topics; each stream judges who joins.
            case srs.DomainInfo() | srs.RouteInfo() | srs.RouteEnd():
                rights, topic = (Right.ROUTER,), None
            case _:
                return True
        peer = Origin.of(self._peers[connection])
        return self._origins.has_right(peer, rights, topic, f"a {type(message).__name__}")

    def _perform(self, effect: events.ServiceEffect) -> None:
        match effect:
            case events.SendBytes(connection, data):
                self._write(connection, data)
            case events.Disconnect(connection):
                self._abort(connection)
            case Remark(text, warning):
                (self._warn if warning else self._log_client)(text)
            case _:
                assert_never(effect)

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Abort the connection of a failed write: the machine learns its end, and the client connects again."""
        report(f"{describe(effect)} of the service failed", error)
        if isinstance(effect, events.SendBytes):
            self._abort(effect.connection)

    def _write(self, connection: int, data: bytes) -> None:
        transport = self._peers.get(connection)
        if transport is None or transport.is_closing():
            return
        transport.write(data)
        waiting = transport.get_write_buffer_size()
        if waiting > MAX_QUEUED_BYTES:
            self.slow = self.details.slow = self.slow + 1
            self._warn(f"connection {connection} is cut off: it does not read, and {waiting} bytes wait for it")
            transport.abort()

    def _abort(self, connection: int) -> None:
        transport = self._peers.get(connection)
        if transport is not None:
            transport.abort()


def _host(address: str) -> str:
    return address.rpartition(":")[0]
