"""The resolution of one context over UDP, on sockets: through relays, or in a multicast group."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.resolver.endpoint import ANY_PORT, Endpoint, bind
from stablecast.runtime import resolution_group
from stablecast.runtime.address import check_ip, join, parse
from stablecast.runtime.resolution_group import MulticastSettings
from stablecast.runtime.resolver_error import ResolverError
from stablecast.transports.resolution.records import INSTANCE_BYTES, SourceRecord
from stablecast.transports.resolution.udp.carriers import MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import (
    ContextEffect,
    Discovered,
    Listen,
    NameFound,
    NameLost,
    NoSource,
    Remark,
    Withdrawn,
)
from stablecast.transports.resolution.udp.inputs import (
    AddName,
    AddPattern,
    AddReceiver,
    AddSource,
    AskName,
    ContextInput,
    ForgetName,
    RemoveName,
    RemovePattern,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    SourceLost,
    Unresolved,
    Wake,
)
from stablecast.transports.resolution.udp.settings import (
    SAFE,
    PatternOptions,
    QueryOptions,
    ResolutionConfig,
)
from stablecast.transports.wire.lbmr import PatternType

LOCAL_PORTS = range(14_402, 14_407)
"""Local ports of contexts; public dissectors know resolution by them. When all are in use, any port does."""

JOIN_SECONDS = 5.0
"""Pause before a group that could not be joined is tried again."""

OnFound = Callable[[str, SourceRecord], None]


def _nothing(*_: Any) -> None:
    """Nobody wants to know."""


@attrs.frozen
class Listeners:
    """Whom to tell; they may call back and must not raise.

    Attributes:
        found: `found(topic, record)` for each source of a wanted topic, perhaps more than once.
        gone: `gone(topic, record)` when such a source said its final word.
        no_source: `no_source(topic, queries)` when that many queries were not answered.
        name_found: `name_found(name, address)` when the store of a name is known, or moved.
        name_lost: `name_lost(name)` when nothing was heard of it for too long.
        remark: `remark(text, warning)`: a line for the log.
    """

    found: OnFound
    gone: OnFound = _nothing
    no_source: Callable[[str, int], None] = _nothing
    name_found: Callable[[str, str], None] = _nothing
    name_lost: Callable[[str], None] = _nothing
    remark: Callable[[str, bool], None] = _nothing


class Resolver:
    """Finds sources for the receivers of one context, and makes its sources found. Made by `start` or `meet`."""

    def __init__(self, machine: ResolutionContext, listeners: Listeners) -> None:
        """Drives a machine in the running loop once its endpoint is opened."""
        self._machine = machine
        self._listeners = listeners
        self._endpoint: Endpoint[ContextInput, ContextEffect] = Endpoint(machine, self._on_effect)
        self._group: tuple[MulticastSettings, str] | None = None
        self._member: socket.socket | None = None
        self._joining: asyncio.TimerHandle | None = None

    @classmethod
    async def start(
        cls,
        interface: str,
        relays: Sequence[str],
        listeners: Listeners,
        *,
        instance: bytes | None = None,
        config: ResolutionConfig = SAFE,
    ) -> "Resolver":
        """Starts resolving from the address `interface` through `relays` (`ip:port` each), in the running loop.

        `instance` is the name of the context in 8 bytes, random by default.

        Raises:
            AddressError: If an address has the wrong form.
            ResolverError: If this machine has no such interface.
            MisuseError: If there is no relay, or too many, or `instance` has another length.
        """
        addresses = [join(*parse(relay)) for relay in relays]
        resolver = cls(ResolutionContext.over_relays(_name(instance), addresses, config), listeners)
        resolver._endpoint.open(bind(check_ip(interface), (*LOCAL_PORTS, ANY_PORT)))
        return resolver

    @classmethod
    async def meet(
        cls,
        settings: MulticastSettings,
        listeners: Listeners,
        *,
        instance: bytes | None = None,
        config: ResolutionConfig = SAFE,
    ) -> "Resolver":
        """Starts resolving in a multicast group (T-022), which is joined when there is something to resolve.

        Raises:
            ResolverError: If this machine has no such interface, or none that can multicast.
            MisuseError: If the address of the group is none.
        """
        outgoing = settings.outgoing or join(settings.group, settings.port)
        resolver = cls(ResolutionContext.create(_name(instance), MulticastGroup(outgoing), config), listeners)
        interface = resolution_group.choose(settings.interface, resolution_group.interfaces())
        resolver._group = (settings, interface)
        resolver._endpoint.open(resolution_group.sender(settings, interface))
        return resolver

    def add_source(self, source: AddSource) -> None:
        """Advertises a source until `remove_source`.

        Raises:
            MisuseError: If it cannot be written on the wire, is there already, or is one too many.
        """
        self._endpoint.feed(source)

    def remove_source(self, session_id: int, index: int) -> None:
        """Stops advertising; receivers learn from the transport that the source is gone."""
        self._endpoint.feed(RemoveSource(session_id, index))

    def add_receiver(self, topic: str, options: QueryOptions | None = None) -> None:
        """Wants the sources of `topic` until `remove_receiver`; for a second receiver, all are reported again.

        Raises:
            MisuseError: If the topic cannot be written on the wire, or is one too many.
        """
        self._endpoint.feed(AddReceiver(topic, options))

    def remove_receiver(self, topic: str) -> None:
        """No receiver wants `topic` any more: nothing is reported from now on."""
        self._endpoint.feed(RemoveReceiver(topic))

    def add_pattern(self, pattern: str, kind: int = PatternType.PCRE, options: PatternOptions | None = None) -> None:
        """Wants the sources of all topics that match until `remove_pattern` (T-031).

        Raises:
            MisuseError: If the pattern is none, cannot be written on the wire, or is one too many.
        """
        self._endpoint.feed(AddPattern(pattern, kind, options))

    def remove_pattern(self, pattern: str) -> None:
        """No receiver wants `pattern` any more."""
        self._endpoint.feed(RemovePattern(pattern))

    def resolved(self, topic: str) -> None:
        """The receiver of `topic` has a live session: stop asking once the initial phase is over."""
        self._endpoint.feed(Resolved(topic))

    def unresolved(self, topic: str) -> None:
        """The receiver of `topic` has no live session any more: ask, and report again what was reported before."""
        self._endpoint.feed(Unresolved(topic))

    def lost(self, topic: str, session_id: int, index: int) -> None:
        """The session of one source is over, others may live (T-307)."""
        self._endpoint.feed(SourceLost(topic, session_id, index))

    def add_name(self, name: str, address: str) -> None:
        """This context is a store that is found by `name` at `address` (T-204). Raises MisuseError."""
        self._endpoint.feed(AddName(name, address))

    def remove_name(self, name: str) -> None:
        """It has this name no more."""
        self._endpoint.feed(RemoveName(name))

    def ask_name(self, name: str) -> bool:
        """Finds the store of this name (T-201); always True. Raises MisuseError."""
        self._endpoint.feed(AskName(name))
        return True

    def forget_name(self, name: str) -> None:
        """Never mind that store."""
        self._endpoint.feed(ForgetName(name))

    def wake(self, flags: int, interval: float = 0, duration: float = 0) -> None:
        """Asks all contexts to speak again of what went quiet (T26), every `interval` for `duration` seconds."""
        self._endpoint.feed(Wake(flags, int(interval * SECOND), int(duration * SECOND)))

    def why(self, topic: str) -> str:
        """Why the receiver of `topic` may have no session, as far as is known here."""
        return self._machine.why(topic)

    def known(self) -> dict[str, tuple[SourceRecord, ...]]:
        """Every source that was heard of, wanted or not, by topic (T-005)."""
        cache = self._machine.querier.cache
        return {topic: cache.of(topic) for topic in cache.topics}

    @property
    def port(self) -> int:
        """The local UDP port."""
        return self._endpoint.port

    def statistics(self) -> dict[str, int]:
        """What was sent, received, and refused so far."""
        return self._endpoint.statistics()

    async def close(self) -> None:
        """Falls silent and closes the sockets."""
        if self._joining is not None:
            self._joining.cancel()
        await self._endpoint.close()

    def _on_effect(self, effect: ContextEffect) -> None:
        tell = self._listeners
        match effect:
            case Discovered(topic, record):
                tell.found(topic, record)
            case Withdrawn(topic, record):
                tell.gone(topic, record)
            case NoSource(topic, queries):
                tell.no_source(topic, queries)
            case NameFound(name, address):
                tell.name_found(name, address)
            case NameLost(name):
                tell.name_lost(name)
            case Remark(text, warning):
                tell.remark(text, warning)
            case Listen(on) if self._group is not None and self._group[0].group != "0.0.0.0":  # noqa: S104  silence
                self._listen(*self._group, on)
            case _:
                pass  # Relays are heard on the socket that sends.

    def _listen(self, settings: MulticastSettings, interface: str, on: bool) -> None:
        """Join the group, or leave it. A group that cannot be joined now is tried again: its machine believes it is."""
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        if not on:
            if self._member is not None and self._member.fileno() >= 0:  # It may never have been joined.
                self._endpoint.shut(self._member)
            return
        try:
            self._member = resolution_group.member(settings, interface)
        except ResolverError as error:
            self._joining = asyncio.get_running_loop().call_later(JOIN_SECONDS, self._listen, settings, interface, on)
            self._listeners.remark(f"{error}; trying again every {JOIN_SECONDS:g} s", True)
            return
        self._endpoint.read(self._member)


def _name(instance: bytes | None) -> bytes:
    return os.urandom(INSTANCE_BYTES) if instance is None else instance
