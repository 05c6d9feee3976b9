"""The resolution of one context on a socket."""

import os
from collections.abc import Callable, Sequence

from stablecast.net.address import check_ip, join, parse
from stablecast.resolver.endpoint import ANY_PORT, Endpoint, bind
from stablecast.transports.resolution.context import ResolutionContext
from stablecast.transports.resolution.effects import Discovered
from stablecast.transports.resolution.inputs import (
    AddReceiver,
    AddSource,
    ContextInput,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    Unresolved,
)
from stablecast.transports.resolution.records import INSTANCE_BYTES, SourceRecord
from stablecast.transports.resolution.relays import ACTIVITY_TIMEOUT, KEEPALIVE_INTERVAL

LOCAL_PORTS = range(14_402, 14_407)
"""Local ports of contexts; public dissectors know resolution by them. When all are in use, any port does."""

OnFound = Callable[[str, SourceRecord], None]


class Resolver:
    """Finds sources for the receivers of one context, and makes its sources found. Made by `start`."""

    def __init__(self, endpoint: Endpoint[ContextInput]) -> None:
        """Wraps a started endpoint."""
        self._endpoint = endpoint

    @classmethod
    async def start(
        cls,
        interface: str,
        relays: Sequence[str],
        on_found: OnFound,
        *,
        instance: bytes | None = None,
        keepalive_interval: int = KEEPALIVE_INTERVAL,
        activity_timeout: int = ACTIVITY_TIMEOUT,
    ) -> "Resolver":
        """Starts resolving from the address `interface` through `relays` (`ip:port` each), in the running loop.

        `on_found(topic, record)` is called for each source of a wanted topic, perhaps more than once; it may call back
        and must not raise. `instance` is the name of the context in 8 bytes, random by default; times are nanoseconds.

        Raises:
            AddressError: If an address has the wrong form.
            ResolverError: If this machine has no such interface.
            MisuseError: If there is no relay, or too many, or `instance` has another length.
        """
        machine = ResolutionContext.create(
            os.urandom(INSTANCE_BYTES) if instance is None else instance,
            [join(*parse(relay)) for relay in relays],
            keepalive_interval,
            activity_timeout,
        )

        def report(found: Discovered) -> None:
            on_found(found.topic, found.record)

        endpoint: Endpoint[ContextInput] = Endpoint(machine, report)
        await endpoint.open(bind(check_ip(interface), (*LOCAL_PORTS, ANY_PORT)))
        return cls(endpoint)

    def add_source(
        self, topic: str, address: str, session_id: int, index: int, request_address: str, persistent: bool
    ) -> None:
        """Advertises a source until `remove_source`; see `SourceRecord` for what the fields mean.

        Raises:
            MisuseError: If it cannot be written on the wire, is there already, or is one too many.
        """
        self._endpoint.feed(AddSource(topic, address, session_id, index, request_address, persistent))

    def remove_source(self, session_id: int, index: int) -> None:
        """Stops advertising; receivers learn from the transport that the source is gone."""
        self._endpoint.feed(RemoveSource(session_id, index))

    def add_receiver(self, topic: str) -> None:
        """Wants the sources of `topic` until `remove_receiver`; for a second receiver, all are reported again.

        Raises:
            MisuseError: If the topic cannot be written on the wire, or is one too many.
        """
        self._endpoint.feed(AddReceiver(topic))

    def remove_receiver(self, topic: str) -> None:
        """No receiver wants `topic` any more: nothing is reported from now on."""
        self._endpoint.feed(RemoveReceiver(topic))

    def resolved(self, topic: str) -> None:
        """The receiver of `topic` has a live session: stop asking once the initial phase is over."""
        self._endpoint.feed(Resolved(topic))

    def unresolved(self, topic: str) -> None:
        """The receiver of `topic` has no live session any more: ask, and report again what was reported before."""
        self._endpoint.feed(Unresolved(topic))

    @property
    def port(self) -> int:
        """The local UDP port."""
        return self._endpoint.port

    def statistics(self) -> dict[str, int]:
        """What was sent, received, and refused so far."""
        return self._endpoint.statistics()

    async def close(self) -> None:
        """Falls silent and closes the socket."""
        await self._endpoint.close()
