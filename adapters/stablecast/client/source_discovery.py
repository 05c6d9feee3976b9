"""Resolution for a context: its sources and receivers find others over UDP, over services, or over both."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Protocol

import attrs

from stablecast.client.advice import log
from stablecast.config.option_kinds import Value
from stablecast.config.resolution_options import ResolutionSettings, configured, strategy, with_old_relay
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.settings import SourceConfig
from stablecast.resolver import Listeners, Resolver
from stablecast.resolver.combined_resolver import Combined, Wait
from stablecast.resolver.resolution import OnRecord, nothing
from stablecast.runtime import address
from stablecast.runtime.address import parse_services
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.interfaces import choose_device, facing, interfaces
from stablecast.transports import codec
from stablecast.transports.resolution.udp.inputs import AddSource, FollowRoutes
from stablecast.transports.resolution.udp.settings import AdvertiseOptions
from stablecast.transports.wire import lbmr

Advertise = AdvertiseOptions | None
"""Options for advertising one source; None for those of the context."""

OnEvent = Callable[[Event], None]

EVERYTHING = lbmr.ResolutionRequest.ADVERTISEMENTS | lbmr.ResolutionRequest.QUERIES
"""The parties that a request for resolution wakes: sources, and receivers."""

MAX_LOGGED_WAITS = 5
"""Waiting receivers that the log names at one time."""


class ResolvingContext(Protocol):
    interface: str
    resolution: ResolutionSettings
    resolver_port: int
    pool: ConnectionPool

    def locate(self, name: str, where: str) -> None: ...

    def no_source(self, topic: str, queries: int) -> None:
        """Report to the receiver of the topic that this many queries found no source."""

    def abandoned(self, topic: str) -> None:
        """Close the receiver of a topic that only patterns want."""


def resolution(name: str = "safe", options: Mapping[str, Value] | None = None) -> ResolutionSettings:
    """Return the settings of a strategy (T-301), for `Context(resolution=...)`.

    Args:
        name: One of safe, default, query-centric, known-threshold, advertise-centric and tcp.
        options: Documented options that override the strategy, for example
            `{"resolver_multicast_interface": "10.29.3.0/24"}`. Options of sources, receivers and wildcard receivers
            become defaults for all of them.

    Raises:
        OptionError, AddressError: A name, value or address is wrong.
    """
    return configured(strategy(name), options or {})


def plan(settings: ResolutionSettings | None, relays: Sequence[str], services: Sequence[str]) -> ResolutionSettings:
    """Return the settings with these relays and services added. Raises AddressError."""
    settings = with_old_relay(settings or ResolutionSettings())
    more_relays = tuple(address.join(*address.parse_place(relay)) for relay in relays)
    more_services = tuple(parse_services(services))
    return attrs.evolve(settings, relays=settings.relays + more_relays, services=settings.services + more_services)


def interface_of(settings: ResolutionSettings) -> str:
    """Return the address of this host that peers can reach: the one that faces the relays, the services or the groups.

    Without any of them it is 127.0.0.1. Raises InterfaceError.
    """
    if settings.multicast is not None and not settings.relays and not settings.services:
        return choose_device(settings.multicast.interface, interfaces())
    own = facing((*(settings.relays if settings.udp else ()), *settings.services))
    log.info("peers connect to this context at %s", own)
    return own


def announce(found: Combined | None, source: SourceConfig, place: str, advertise: Advertise) -> None:
    """Advertise a source, whose data is joined at `place`. Raises MisuseError if the context has too many."""
    if found is not None:
        session, index = codec.split(source.incarnation)
        found.add_source(
            AddSource(source.topic, place, session, index, source.reply_to, bool(source.stores), advertise)
        )


async def start(
    context: ResolvingContext,
    on_found: OnRecord,
    on_gone: OnRecord | None,
    instance: bytes,
    stack: AsyncExitStack,
    remark: Callable[[str, bool], None] | None = None,
    on_wait: Callable[[Sequence[Wait]], None] | None = None,
) -> Combined | None:
    """Start the configured resolvers, and close them with `stack`; return None if none is configured.

    `on_found` gets each source of a wanted topic, and `on_gone` each whose end was announced. `remark` gets the texts
    for a log, and whether each is a warning, and `on_wait` the receivers that wait for long; without them both are
    logged.

    Relays win over multicast (T-008). Raises like `Resolver.start`, `Resolver.meet` and `SrsResolver.start`.
    """
    settings = context.resolution
    if settings.config.domains.number:
        context.pool.routing.learn(settings.config.domains.number)
    over_udp = settings.udp and bool(settings.relays or settings.multicast)
    if not over_udp and not settings.services:
        return None
    found = Combined(on_found, on_wait or _log_waits, context.abandoned, on_gone or nothing)
    stack.push_async_callback(found.close)
    context.pool.routing.on_far = partial(found.feed_names, FollowRoutes())
    if over_udp:
        listeners = Listeners(
            found.found,
            found.gone,
            context.no_source,
            context.locate,
            name_lost=_log_lost_name,
            remark=remark or _log_remark,
            abandoned=partial(found.abandoned, "udp"),
            domain=context.pool.routing.learn,
            route=context.pool.routing.route,
        )
        resolver = await _over_udp(context.interface, settings, listeners, instance)
        context.resolver_port = resolver.port
        found.add([resolver])
    if settings.services:
        # Contexts without a service do not pay for its protocol.
        from stablecast.resolver.srs_resolver import SrsResolver  # noqa: PLC0415
        from stablecast.transports.resolution.srs.settings import CLIENT_DEFAULTS  # noqa: PLC0415

        service = await SrsResolver.start(
            context.interface,
            settings.services,
            Listeners(
                found.found,
                found.gone,
                remark=remark or _log_remark,
                abandoned=partial(found.abandoned, "services"),
                service=_log_service,
                domain=context.pool.routing.learn,
                route=partial(context.pool.routing.route, by="services"),
            ),
            instance=instance,
            config=attrs.evolve(CLIENT_DEFAULTS, flood=settings.flood, domains=settings.config.domains),
            ends=settings.ends,
        )
        found.add([service])
    return found


async def _over_udp(interface: str, settings: ResolutionSettings, listeners: Listeners, instance: bytes) -> Resolver:
    if settings.relays or settings.multicast is None:
        return await Resolver.start(
            interface,
            settings.relays,
            listeners,
            instance=instance,
            config=settings.config,
            unicast=settings.unicast,
            ends=settings.ends,
        )
    return await Resolver.meet(settings.multicast, listeners, instance=instance, config=settings.config)


def _log_remark(text: str, warning: bool) -> None:
    log.log(logging.WARNING if warning else logging.INFO, "%s", text)


def _log_lost_name(name: str) -> None:
    log.info("store '%s' is silent and is queried again", name)


def _log_waits(waits: Sequence[Wait]) -> None:
    for wait in waits[:MAX_LOGGED_WAITS]:
        log.warning("receiver of '%s' has found no source for %.0f s: %s", wait.topic, wait.seconds, wait.reason)
    if len(waits) > MAX_LOGGED_WAITS:
        log.warning("%d more receivers have found no source", len(waits) - MAX_LOGGED_WAITS)


def _log_service(service: str, up: bool, reason: str) -> None:
    if up:
        log.info("resolver service %s is connected", service)
    else:
        log.warning("resolver service %s is not connected: %s", service, reason)
