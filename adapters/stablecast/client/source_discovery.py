"""How the sources and receivers of a context find each other: over UDP, over services, or over both."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

import attrs

from stablecast.client.advice import log
from stablecast.config.option_kinds import Value
from stablecast.config.resolution_options import ResolutionSettings, configured, strategy
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.inputs import Located
from stablecast.core.protocol.settings import SourceConfig
from stablecast.resolver import Listeners, Resolver
from stablecast.resolver.combined_resolver import Combined, Wait
from stablecast.resolver.srs_resolver import OnRecord, SrsResolver
from stablecast.runtime import address
from stablecast.runtime.address import parse_services
from stablecast.transports import codec
from stablecast.transports.resolution.udp.inputs import AddSource
from stablecast.transports.resolution.udp.settings import AdvertiseOptions
from stablecast.transports.wire import lbmr

Advertise = AdvertiseOptions | None
"""How one source is advertised; None: like all others."""

OnEvent = Callable[[Event], None]

EVERYTHING = lbmr.ResolutionRequest.ADVERTISEMENTS | lbmr.ResolutionRequest.QUERIES
"""What a request wakes: sources, and receivers."""

MAX_TOLD = 5
"""Waiting receivers that are named in the log at one time."""

UNFINDABLE = "nobody here finds the store named '%s': give its address, or a relay or multicast to ask"
"""A store that a source knows by a name that cannot be resolved (T-010)."""


class Finder(Protocol):
    """What finding needs of a context."""

    interface: str
    resolution: ResolutionSettings
    resolver_port: int

    def locate(self, name: str, where: str) -> None:
        """The store of this name is there."""


class Seeker(Protocol):
    """What finding needs of a source that knows stores by name."""

    config: SourceConfig

    def receive(self, event: Located) -> None:
        """A store is there."""


def resolution(name: str = "safe", options: Mapping[str, Value] | None = None) -> ResolutionSettings:
    """A strategy by its name (T-301), and documented options that win over it, for `Context(resolution=...)`.

    The strategies: safe, default, query-centric, known-threshold, advertise-centric, tcp. Options are those of a
    context, and those of sources, receivers and wildcard receivers as defaults for all of them, for example
    `{"resolver_multicast_interface": "10.29.3.0/24"}`.

    Raises:
        OptionError, AddressError: A name, value or address that cannot be.
    """
    return configured(strategy(name), options or {})


def plan(settings: ResolutionSettings | None, relays: Sequence[str], services: Sequence[str]) -> ResolutionSettings:
    """The settings with these relays and services as well. Raises AddressError."""
    settings = settings or ResolutionSettings()
    more_relays = tuple(address.join(*address.parse(relay)) for relay in relays)
    more_services = tuple(parse_services(services))
    return attrs.evolve(settings, relays=settings.relays + more_relays, services=settings.services + more_services)


def announce(found: Combined | None, source: SourceConfig, place: str, advertise: Advertise) -> None:
    """Make a source, whose data is joined at `place`, known to whatever the context uses. Raises MisuseError."""
    if found is not None:
        session, index = codec.split(source.incarnation)
        found.add_source(
            AddSource(source.topic, place, session, index, source.reply_to, bool(source.stores), advertise)
        )


def locate(found: Combined | None, source: Seeker, known: Mapping[str, str]) -> None:
    """Tell a source where the stores are that it knows by name; those that nobody told us of are asked for (T-201)."""
    for name in [store.name for store in source.config.stores if store.name]:
        if name in known:
            source.receive(Located(name, known[name]))
        elif found is None or not found.ask_name(name):
            log.warning(UNFINDABLE, name)


async def start(context: Finder, on_found: OnRecord, instance: bytes, stack: AsyncExitStack) -> Combined | None:
    """Start what the context has been told of, None if that is nothing; it is closed with `stack`.

    Relays win over multicast (T-008). Raises like `Resolver.start`, `Resolver.meet` and `SrsResolver.start`.
    """
    settings = context.resolution
    over_udp = settings.udp and bool(settings.relays or settings.multicast)
    if not over_udp and not settings.services:
        return None
    found = Combined(on_found, _tell_of_waits)
    stack.push_async_callback(found.close)
    if over_udp:
        listeners = Listeners(found.found, found.gone, name_found=context.locate, remark=_remark)
        resolver = await _over_udp(context.interface, settings, listeners, instance)
        context.resolver_port = resolver.port
        found.add([resolver])
    if settings.services:
        service = await SrsResolver.start(
            context.interface,
            settings.services,
            found.found,
            on_gone=found.gone,
            on_service=_tell,
            instance=instance,
        )
        found.add([service])
    return found


async def _over_udp(interface: str, settings: ResolutionSettings, listeners: Listeners, instance: bytes) -> Resolver:
    if settings.relays or settings.multicast is None:
        return await Resolver.start(interface, settings.relays, listeners, instance=instance, config=settings.config)
    return await Resolver.meet(settings.multicast, listeners, instance=instance, config=settings.config)


def _remark(text: str, warning: bool) -> None:
    log.log(logging.WARNING if warning else logging.INFO, "%s", text)


def _tell_of_waits(waits: Sequence[Wait]) -> None:
    for wait in waits[:MAX_TOLD]:
        log.warning("receiver of '%s' is unresolved for %.0f s: %s", wait.topic, wait.seconds, wait.reason)
    if len(waits) > MAX_TOLD:
        log.warning("%d more receivers are unresolved", len(waits) - MAX_TOLD)


def _tell(service: str, up: bool, reason: str) -> None:
    if up:
        log.info("service %s keeps us informed", service)
    else:
        log.warning("service %s does not keep us informed: %s", service, reason)
