"""The resolution of one context over services (SRS), on sockets."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import assert_never

from stablecast.resolver.channels import Channels
from stablecast.runtime.address import check_ip
from stablecast.runtime.alarm import Alarm
from stablecast.runtime.effect_execution import describe, guard, report
from stablecast.runtime.service_addresses import parse_services
from stablecast.transports.resolution.records import INSTANCE_BYTES, SourceRecord
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.events import (
    Connect,
    ConnectionClosed,
    Disconnect,
    SendBytes,
    ServiceChanged,
    SrsContextEffect,
    SrsContextInput,
)
from stablecast.transports.resolution.srs.settings import CLIENT_DEFAULTS, ClientConfig
from stablecast.transports.resolution.udp.effects import Discovered, Withdrawn
from stablecast.transports.resolution.udp.inputs import (
    AddPattern,
    AddReceiver,
    AddSource,
    RemovePattern,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    SourceLost,
    Unresolved,
)
from stablecast.transports.resolution.udp.settings import QueryOptions

OnRecord = Callable[[str, SourceRecord], None]
OnService = Callable[[str, bool, str], None]


class SrsResolver:
    """Like `Resolver`, over services. Made by `start`."""

    def __init__(
        self,
        machine: SrsContext,
        interface: str,
        on_found: OnRecord,
        on_gone: OnRecord | None,
        on_service: OnService | None,
    ) -> None:
        """Drives `machine` in the running loop, from its first timeout on."""
        self._machine = machine
        self._on_found = on_found
        self._on_gone = on_gone
        self._on_service = on_service
        self._loop = asyncio.get_running_loop()
        self._channels = Channels(interface, self._feed)
        self._effects: deque[SrsContextEffect] = deque()
        self._performing = False
        self._closed = False
        self._alarm = Alarm(self._wake)
        self._alarm.set(machine.next_timeout())

    @classmethod
    async def start(
        cls,
        interface: str,
        services: Sequence[str],
        on_found: OnRecord,
        *,
        on_gone: OnRecord | None = None,
        on_service: OnService | None = None,
        instance: bytes | None = None,
        config: ClientConfig = CLIENT_DEFAULTS,
    ) -> "SrsResolver":
        """Starts resolving from the address `interface` through `services` (`host:port` each), in the running loop.

        `on_found(topic, record)` is called for each source of a wanted topic, perhaps more than once; `on_gone` when
        such a source is no more; `on_service(address, up, reason)` when a service begins or ceases to keep us informed.
        They may call back and must not raise. `instance` is the name of the context in 8 bytes, random by default.
        Returns at once: services are connected to, and connected to again, in the background.

        Raises:
            AddressError: If an address has the wrong form.
            MisuseError: If there is no service, or too many, or `instance` has another length.
        """
        name = os.urandom(INSTANCE_BYTES) if instance is None else instance
        machine = SrsContext.create(name, parse_services(services), int.from_bytes(os.urandom(8)), config)
        return cls(machine, check_ip(interface), on_found, on_gone, on_service)

    def add_source(self, source: AddSource) -> None:
        """Announces a source until `remove_source`; its options are of UDP, and mean nothing here.

        Raises:
            MisuseError: If it cannot be written on the wire, is there already, or is one too many.
        """
        self._feed(source)

    def remove_source(self, session_id: int, index: int) -> None:
        """Withdraws a source: who wanted it is told."""
        self._feed(RemoveSource(session_id, index))

    def add_receiver(self, topic: str, options: QueryOptions | None = None) -> None:
        """Wants the sources of `topic` until `remove_receiver`; for a second receiver, all are reported again.

        Raises:
            MisuseError: If the topic cannot be written on the wire, or is one too many.
        """
        self._feed(AddReceiver(topic))

    def remove_receiver(self, topic: str) -> None:
        """No receiver wants `topic` any more."""
        self._feed(RemoveReceiver(topic))

    def add_pattern(self, pattern: str) -> None:
        """Wants the sources of all topics that match until `remove_pattern`.

        Raises:
            MisuseError: If the pattern is none, cannot be written on the wire, or is one too many.
        """
        self._feed(AddPattern(pattern))

    def remove_pattern(self, pattern: str) -> None:
        """No receiver wants `pattern` any more."""
        self._feed(RemovePattern(pattern))

    def resolved(self, topic: str) -> None:
        """The receiver of `topic` has a live session."""
        self._feed(Resolved(topic))

    def unresolved(self, topic: str) -> None:
        """The receiver of `topic` has no live session any more: services are told, what is known is reported again."""
        self._feed(Unresolved(topic))

    def lost(self, topic: str, session_id: int, index: int) -> None:
        """The session of one source is over, others live: services are told, what is known is reported again."""
        self._feed(SourceLost(topic, session_id, index))

    def ask_name(self, name: str) -> bool:
        """Services know no names of stores: those are found over UDP (T-010)."""
        return False

    def wake(self, flags: int, interval: float = 0, duration: float = 0) -> None:
        """Services are never quiet."""

    def why(self, topic: str) -> str:
        """Why the receiver of `topic` may have no session, as far as is known here."""
        return self._machine.why(topic)

    def statistics(self) -> dict[str, int]:
        """Services that keep us informed, sources known, and what was told so far."""
        return self._machine.counters()

    async def close(self) -> None:
        """Hang up, and wait until nothing is left running; nothing is reported any more."""
        self._closed = True
        self._alarm.set(None)
        await self._channels.close()

    def _feed(self, event: SrsContextInput) -> None:
        if not self._closed:
            self._machine.receive(event, time.monotonic_ns())
            self._drain()

    def _drain(self) -> None:
        """Performs effects in order; what callbacks cause comes behind."""
        self._effects += self._machine.take_effects()
        if self._performing:
            return
        self._performing = True
        try:
            while self._effects and not self._closed:
                effect = self._effects.popleft()
                try:
                    self._perform(effect)
                except Exception as error:  # noqa: BLE001 - the other effects must be performed
                    guard(f"handling the failure of {describe(effect)} failed", self._on_failed, effect, error)
        finally:
            self._performing = False
            self._alarm.set(None if self._closed else self._machine.next_timeout())

    def _on_failed(self, effect: SrsContextEffect, error: Exception) -> None:
        """Feed the machine the end of the connection that an effect was for; it connects again, and says all anew.

        A source or a service that could not be reported is reported again when its receiver asks again.
        """
        report(f"{describe(effect)} of the resolver service failed", error)
        if isinstance(effect, SendBytes | Connect):
            self._channels.cut(effect.connection)
            self._feed(ConnectionClosed(effect.connection, f"{type(error).__name__}: {error}"))

    def _perform(self, effect: SrsContextEffect) -> None:
        match effect:
            case SendBytes(connection, data):
                self._channels.write(connection, data)
            case Connect(connection, address):
                self._channels.connect(connection, address)
            case Disconnect(connection):
                self._channels.cut(connection)
            case Discovered(topic, record):
                self._on_found(topic, record)
            case Withdrawn(topic, record):
                if self._on_gone is not None:
                    self._on_gone(topic, record)
            case ServiceChanged(address, up, reason):
                if self._on_service is not None:
                    self._on_service(address, up, reason)
            case _:
                assert_never(effect)

    def _wake(self) -> None:
        self._machine.handle_timeout(time.monotonic_ns())
        self._drain()
