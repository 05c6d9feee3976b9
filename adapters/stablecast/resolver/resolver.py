"""Topic resolution of one context over UDP: through relays, or in a multicast group."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stablecast.core.errors import StablecastError
from stablecast.resolver.endpoint import Endpoint
from stablecast.resolver.resolution import Listeners, NamesInput, Resolution, nothing
from stablecast.runtime import machine, multicast
from stablecast.runtime.address import AddressError, is_host, join, parse
from stablecast.runtime.datagrams import DatagramSocket
from stablecast.runtime.interfaces import ANY, choose_device, interfaces, resolved_place
from stablecast.runtime.multicast import MulticastSettings
from stablecast.runtime.ports import PortError
from stablecast.runtime.unicast import ANY_PORT, NO_ENDS, LocalEnd, UnicastSettings, bound
from stablecast.transports.resolution.records import INSTANCE_BYTES, SourceRecord
from stablecast.transports.resolution.udp import effects as fx
from stablecast.transports.resolution.udp import inputs
from stablecast.transports.resolution.udp.carriers import MulticastGroup, Relays
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.settings import SAFE, ResolutionConfig

JOIN_SECONDS = 5.0
"""Pause before a group that could not be joined is tried again."""


LOOK_SECONDS = 5.0
"""Time between two looks at the relays, and silence after which the host of a relay is looked up again."""


class RelayHosts:
    """Look up the hosts of silent relays, in threads, on the running loop.

    A relay that moved has another address afterwards. The machine knows each relay by its first address, so the
    endpoint sends to the new address under the old one.
    """

    def __init__(
        self, places: Mapping[str, str], endpoint: Endpoint[Any, Any], remark: Callable[[str, bool], None]
    ) -> None:
        """Follow relays, by `host:port`, with the address `ip:port` that each has now."""
        self._first = dict(places)
        self._found = dict(places)
        self._endpoint = endpoint
        self._remark = remark
        self._task: asyncio.Task[None] | None = None
        if places:
            endpoint.watch(list(places.values()))
            self._task = asyncio.get_running_loop().create_task(self._follow())

    def close(self) -> None:
        """Look nothing up any more."""
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for relay, first in self._first.items():
                if not self._endpoint.heard_within(first, LOOK_SECONDS):
                    with suppress(AddressError):  # The last address stays in use.
                        await self._look_up(relay, first)

    async def _look_up(self, relay: str, first: str) -> None:
        found = await machine.threads.call(resolved_place, relay)
        if found != self._found[relay]:
            self._found[relay] = found
            self._endpoint.move(first, found)
            self._remark(f"relay {relay} has the address {found} now", False)


class Resolver(Resolution):
    """Find sources for the receivers of one context, and advertise its sources; `start` or `meet` creates it."""

    over_udp = True

    def __init__(self, machine: ResolutionContext, listeners: Listeners) -> None:
        """Prepare the endpoint of a machine in the running loop."""
        self._machine = machine
        self._listeners = listeners
        self._endpoint: Endpoint[inputs.ContextInput, fx.ContextEffect] = Endpoint(machine, self._on_effect)
        self._group: tuple[MulticastSettings, str] | None = None
        self._member: DatagramSocket | None = None
        self._joining: asyncio.TimerHandle | None = None
        self._hosts: RelayHosts | None = None
        self._change: Callable[[str], None] = nothing

    @classmethod
    async def start(
        cls,
        interface: str,
        relays: Sequence[str],
        listeners: Listeners,
        *,
        instance: bytes | None = None,
        config: ResolutionConfig = SAFE,
        unicast: UnicastSettings = ANY_PORT,
        ends: Mapping[str, LocalEnd] = NO_ENDS,
        router_of: int = 0,
    ) -> "Resolver":
        """Start to resolve from the address `interface` through `relays`, in the running loop.

        Each relay is `ip:port` or `host:port`. A host is looked up again at intervals while its relay is silent.

        `instance` is the name of the context in 8 bytes, random by default. `unicast` is the local end for all relays,
        and `ends` those of single relays. `router_of` is the domain of a router's portal; 0: this is an application.

        Raises:
            AddressError: An address has the wrong form, or a host has no address.
            PortError: This machine has no such interface.
            MisuseError: There is no relay, or too many, or `instance` has another length.
        """
        places = {
            relay: await machine.threads.call(resolved_place, relay) if is_host(relay) else join(*parse(relay))
            for relay in relays
        }
        context = ResolutionContext.over_relays(
            _name(instance), list(places.values()), config, router=bool(router_of), domain=router_of
        )
        resolver = cls(context, listeners)
        resolver._endpoint.open(bound(unicast, interface))
        try:
            for relay, end in ends.items():
                if relay in places:
                    resolver._endpoint.branch(places[relay], bound(unicast, interface, end))
        except StablecastError:
            await resolver.close()
            raise

        def change(own: str) -> None:
            resolver._endpoint.change(bound(unicast, own))
            for relay, end in ends.items():
                if relay in places:
                    resolver._endpoint.change(bound(unicast, own, end), places[relay])

        resolver._change = change
        resolver._begin(config)
        resolver._hosts = RelayHosts(
            {relay: place for relay, place in places.items() if is_host(relay)}, resolver._endpoint, listeners.remark
        )
        return resolver

    @classmethod
    async def meet(
        cls,
        settings: MulticastSettings,
        listeners: Listeners,
        *,
        instance: bytes | None = None,
        config: ResolutionConfig = SAFE,
        router_of: int = 0,
    ) -> "Resolver":
        """Start to resolve in a multicast group (T-022), which is joined when there is something to resolve.

        `router_of` is the domain of a router's portal, which joins at once; 0: this is an application.

        Raises:
            InterfaceError: This machine has no such interface, or none that can multicast.
            PortError: The interface cannot multicast.
            MisuseError: The address of the group is malformed.
        """
        outgoing = settings.outgoing or join(settings.group, settings.port)
        context = ResolutionContext.create(
            _name(instance), MulticastGroup(outgoing), config, router=bool(router_of), domain=router_of
        )
        resolver = cls(context, listeners)
        interface = choose_device(settings.interface, interfaces())
        resolver._group = (settings, interface)
        resolver._endpoint.open(multicast.sending(interface, settings.ttl, settings.loop))

        def change(own: str) -> None:
            resolver._group = (settings, own)
            resolver._endpoint.change(multicast.sending(own, settings.ttl, settings.loop))
            if resolver._member is not None:
                resolver._member.move(multicast.hearing(settings.group, settings.port, own, settings.receive_buffer))

        resolver._change = change
        resolver._begin(config)
        return resolver

    def _begin(self, config: ResolutionConfig) -> None:
        """Take part at once if the context must; without sources and receivers it gives the machine no input."""
        if self._machine.router or config.relays.force_alive or config.domains.number:
            self._endpoint.begin()

    @property
    def saying(self) -> bool:
        """Return whether advertisements of new or ended sources wait for the rate limit."""
        return bool(self._machine.advertiser.singles or self._machine.advertiser.repeated)

    @property
    def silent(self) -> bool:
        """Return whether every relay has become inactive."""
        carrier = self._machine.carrier
        return isinstance(carrier, Relays) and carrier.alone

    def move(self, interface: str) -> None:
        self._change(interface)

    def feed(self, event: inputs.ResolutionInput) -> None:
        """Feed one input to the machine; do nothing once closed. Raises MisuseError."""
        self._endpoint.feed(event)

    def feed_names(self, event: NamesInput) -> None:
        """Feed one input to the machine; do nothing once closed. Raises MisuseError."""
        self._endpoint.feed(event)

    def why(self, topic: str) -> str:
        return self._machine.why(topic)

    def known(self) -> dict[str, tuple[SourceRecord, ...]]:
        """Return every source that was advertised, wanted or not, by topic (T-005)."""
        cache = self._machine.querier.cache
        return {topic: cache.of(topic) for topic in cache.topics}

    @property
    def port(self) -> int:
        return self._endpoint.port

    def statistics(self) -> dict[str, int]:
        """Return the counters of sent, received and refused datagrams."""
        return self._endpoint.statistics()

    async def close(self) -> None:
        if self._joining is not None:
            self._joining.cancel()
        if self._hosts is not None:
            self._hosts.close()
        await self._endpoint.close()

    def _on_effect(self, effect: fx.ContextEffect) -> None:
        listeners = self._listeners
        match effect:
            case fx.SourceNotFound(topic, queries):
                listeners.no_source(topic, queries)
            case fx.NameFound(name, address):
                listeners.name_found(name, address)
            case fx.NameLost(name):
                listeners.name_lost(name)
            case fx.Overheard(packet):
                listeners.overheard(packet)
            case fx.Listen(on):
                if self._group is not None and self._group[0].group != ANY:
                    self._listen(*self._group, on)
            case fx.SendDatagram():
                pass  # The endpoint sends it.
            case _:
                listeners.tell(effect)

    def _listen(self, settings: MulticastSettings, interface: str, on: bool) -> None:
        """Join the group, or leave it; try again to join later, because the machine counts on it."""
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        if not on:
            if self._member is not None:  # It may never have been joined.
                self._endpoint.shut(self._member)
                self._member = None
            return
        try:
            joined = multicast.hearing(settings.group, settings.port, interface, settings.receive_buffer)
        except PortError as error:
            self._joining = asyncio.get_running_loop().call_later(JOIN_SECONDS, self._listen, settings, interface, on)
            self._listeners.remark(f"{error}; trying again every {JOIN_SECONDS:g} s", True)
            return
        self._member = self._endpoint.read(joined)


def _name(instance: bytes | None) -> bytes:
    return machine.entropy.octets(INSTANCE_BYTES) if instance is None else instance
