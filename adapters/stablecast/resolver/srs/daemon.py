"""The service (SRS) on sockets: feed, drain, perform, re-arm."""

import asyncio
import errno
import itertools
import json
import secrets
import socket
import time
from collections.abc import Callable
from typing import assert_never

from stablecast.resolver.srs.config import SrsConfig
from stablecast.runtime import ports, tls
from stablecast.runtime.address import join
from stablecast.runtime.alarm import Alarm
from stablecast.runtime.effect_execution import describe, perform_all, report
from stablecast.runtime.keepalive import keep_alive
from stablecast.runtime.resolver_error import ResolverError
from stablecast.transports.resolution.srs.events import (
    BytesReceived,
    ConnectionAccepted,
    ConnectionClosed,
    Disconnect,
    SendBytes,
    ServiceEffect,
    ServiceInput,
)
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.resolution.udp.effects import Remark

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes waiting for one slow client; beyond that it is cut off, logged, and served anew when it is back."""

BACKLOG = 1024
"""Connections that wait to be accepted, for the moment when all contexts come back."""


class Peer(asyncio.Protocol):
    """One connection."""

    def __init__(self, daemon: "SrsDaemon", number: int) -> None:
        """A connection to `daemon`."""
        self._daemon = daemon
        self._number = number

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Somebody is there."""
        keep_alive(transport)
        self._daemon.on_made(self._number, transport, join(*transport.get_extra_info("peername")))

    def data_received(self, data: bytes) -> None:
        """It said something."""
        self._daemon.feed(BytesReceived(self._number, data))

    def connection_lost(self, exc: Exception | None) -> None:
        """It left."""
        self._daemon.on_lost(self._number)


class SrsDaemon:
    """A service that serves until it is closed. Made by `start`. `address` is where it listens, `ip:port`."""

    def __init__(self, config: SrsConfig, log: Callable[[str], None]) -> None:
        """Drives a machine in the running loop; `log` gets lines and must not raise."""
        self.address = ""
        self.config = config
        self.slow = 0
        self._log = log
        self._machine = ResolutionService(secrets.randbelow((1 << 32) - 1) + 1, config.service())
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._peers: dict[int, asyncio.Transport] = {}
        self._server: asyncio.Server | None = None
        self._closed = False
        self._alarm = Alarm(self._wake)
        self._report: asyncio.TimerHandle | None = None
        self._reported: dict[str, int] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    @classmethod
    async def start(cls, config: SrsConfig, log: Callable[[str], None]) -> "SrsDaemon":
        """Starts a service in the running loop.

        Raises:
            ResolverError: If it cannot listen where it should.
        """
        daemon = cls(config, log)
        try:
            daemon._server = await daemon._loop.create_server(
                lambda: Peer(daemon, next(daemon._numbers)),
                config.interface,
                config.port,
                family=socket.AF_INET,
                backlog=BACKLOG,
                ssl=tls.server(),
                ssl_handshake_timeout=tls.handshake(),
            )
        except OSError as error:
            where = f"port {config.port} on {config.interface}"
            if error.errno == errno.EADDRINUSE:
                raise ResolverError(f"{where} is in use: stop the other service or choose another port") from error
            if error.errno == errno.EADDRNOTAVAIL:
                raise ResolverError(f"{config.interface} is not an address of this machine: choose another") from error
            raise ResolverError(f"the service cannot listen at {where}: {error.strerror or error}") from error
        daemon.address = join(*daemon._server.sockets[0].getsockname())
        if config.publishing_interval:
            daemon._report_later()
        return daemon

    def statistics(self) -> dict[str, int]:
        """What there is now, and what happened so far; `slow` counts clients cut off because they did not read."""
        return {**self._machine.counters(), "slow": self.slow}

    async def close(self) -> None:
        """Stops serving; clients connect again to whoever is there next."""
        self._closed = True
        self._alarm.set(None)
        if self._report is not None:
            self._report.cancel()
        if self._server is not None:
            await ports.close(self._server)
        for transport in self._peers.values():
            transport.abort()
        await self._empty.wait()

    def feed(self, event: ServiceInput) -> None:
        """Feeds one input and does what follows; does nothing once closed."""
        if not self._closed:
            self._machine.receive(event, time.monotonic_ns())
            self._drain()

    def on_made(self, number: int, transport: asyncio.Transport, address: str) -> None:
        """A connection is there; who was accepted just before the end comes here after it and is hung up on."""
        if self._closed:
            transport.abort()
        self._peers[number] = transport
        self._empty.clear()
        self.feed(ConnectionAccepted(number, address))

    def on_lost(self, number: int) -> None:
        """A connection is over."""
        del self._peers[number]
        if not self._peers:
            self._empty.set()
        self.feed(ConnectionClosed(number))

    def _report_later(self) -> None:
        """Statistics in the log from time to time (T-421): the first time all, then what changed."""

        def report() -> None:
            statistics = self.statistics()
            changed = {name: value for name, value in statistics.items() if self._reported.get(name) != value}
            self._reported = statistics
            self._log(f"statistics {json.dumps(changed)}")
            self._report_later()

        self._report = self._loop.call_later(self.config.publishing_interval / 1_000, report)

    def _drain(self) -> None:
        try:
            perform_all(self._machine.take_effects(), self._perform, self._on_failed)
        finally:
            self._alarm.set(None if self._closed else self._machine.next_timeout())

    def _perform(self, effect: ServiceEffect) -> None:
        match effect:
            case SendBytes(connection, data):
                self._write(connection, data)
            case Disconnect(connection):
                self._abort(connection)
            case Remark(text):
                self._log(text)
            case _:
                assert_never(effect)

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Break the connection that a write was for: its end is fed to the machine, and the client connects again."""
        report(f"{describe(effect)} of the service failed", error)
        if isinstance(effect, SendBytes):
            self._abort(effect.connection)

    def _write(self, connection: int, data: bytes) -> None:
        transport = self._peers.get(connection)
        if transport is None:
            return
        transport.write(data)
        waiting = transport.get_write_buffer_size()
        if waiting > MAX_QUEUED_BYTES:
            self.slow += 1
            self._log(f"connection {connection} is cut off: it does not read, {waiting} bytes wait for it")
            transport.abort()

    def _abort(self, connection: int) -> None:
        transport = self._peers.get(connection)
        if transport is not None:
            transport.abort()

    def _wake(self) -> None:
        self._machine.handle_timeout(time.monotonic_ns())
        self._drain()
