"""The documented options of resolution: of a context, and of single sources, receivers and patterns (T-003).

A context may also set the options of sources, receivers and wildcard receivers. They hold for all of them that do not
set the option themselves.
"""

from collections.abc import Mapping
from typing import TypeVar

import attrs

from stablecast.config import option_kinds as k
from stablecast.config.documented_options import suggestion
from stablecast.config.option import Option, set_known
from stablecast.config.stores import NOWHERE
from stablecast.core.machine.units import SECOND
from stablecast.runtime import address
from stablecast.runtime.address import parse_services
from stablecast.runtime.interfaces import ANY
from stablecast.runtime.multicast import MulticastSettings
from stablecast.runtime.unicast import LocalEnd, UnicastSettings
from stablecast.transports.codec.domains import MAX_DOMAIN
from stablecast.transports.resolution.udp import settings as udp
from stablecast.transports.resolution.udp.presets import PRESETS
from stablecast.transports.wire.lbmr import PatternLanguage

MAX_RATE = 1 << 50
OLD_RELAY_PORT = 15_380
"""Documented port of a relay (resolver_unicast_destination_port)."""
MAX_DATAGRAM_OPTION = 65_535


def plain_interface(text: str) -> str:
    """Return an interface without quotation marks; empty for 0.0.0.0, which leaves the choice to the context."""
    plain = text.strip('"')
    return "" if plain == ANY else plain


@attrs.frozen
class ResolutionSettings:
    """The means by which a context finds sources and is found.

    Attributes:
        config: Phases, limits and caches.
        relays: Addresses of relays (lbmrd); with one relay, multicast is off (T-008).
        services: Addresses of services (SRS).
        multicast: Group for resolution; None: no multicast.
        udp: Whether topics are resolved over UDP.
        unicast: The local end of resolution through relays.
        ends: The local end for single relays and services, by their address (`interface:port->address`).
        old_relay: The relay of the deprecated options, address and port; its address is 0.0.0.0 for none.
        flood: Whether services send every source, not only wanted ones.
    """

    config: udp.ResolutionConfig = udp.SAFE
    relays: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    multicast: MulticastSettings | None = None
    udp: bool = True
    unicast: UnicastSettings = UnicastSettings()
    ends: Mapping[str, LocalEnd] = attrs.field(factory=dict)
    old_relay: tuple[str, int] = (ANY, OLD_RELAY_PORT)
    flood: bool = False


_LANGUAGES = k.words(pcre=PatternLanguage.PCRE, regex=PatternLanguage.REGEX)
RATE = k.NumberKind(0, MAX_RATE, "per second")
BITS = k.NumberKind(0, MAX_RATE, "bit/s")
SIZE = k.NumberKind(udp.MIN_DATAGRAM, MAX_DATAGRAM_OPTION, "bytes", or_zero=True)

# fmt: off
SOURCE = (
    Option("resolver_advertisement_minimum_initial_interval", "pace.shortest", k.SPAN,
           "first interval; 0: no initial phase"),
    Option("resolver_advertisement_maximum_initial_interval", "pace.longest", k.SPAN,
           "longest interval; 0: no initial phase"),
    Option("resolver_advertisement_minimum_initial_duration", "pace.initial", k.SPAN,
           "length of the initial phase; 0: endless"),
    Option("resolver_advertisement_sustain_interval", "pace.sustain", k.SPAN,
           "interval of the sustaining phase; 0: no such phase"),
    Option("resolver_advertisement_minimum_sustain_duration", "pace.sustaining", k.SECONDS,
           "length of that phase; 0: endless"),
    Option("resolver_send_initial_advertisement", "at_creation", k.FLAG, "advertise a source once when it is created"),
    Option("resolver_advertisement_send_immediate_response", "at_once", k.FLAG, "answer queries without delay"),
    Option("resolver_send_final_advertisements", "at_end", k.FLAG, "advertise the end of a source"),
)
RECEIVER = (
    Option("resolver_query_minimum_initial_interval", "pace.shortest", k.SPAN, "first interval; 0: no initial phase"),
    Option("resolver_query_maximum_initial_interval", "pace.longest", k.SPAN, "longest interval; 0: no initial phase"),
    Option("resolver_query_minimum_initial_duration", "pace.initial", k.SPAN,
           "length of the initial phase; 0: endless"),
    Option("resolver_query_sustain_interval", "pace.sustain", k.SPAN,
           "interval of the sustaining phase; 0: no such phase"),
    Option("resolver_query_minimum_sustain_duration", "pace.sustaining", k.SECONDS, "length of that phase; 0: endless"),
    Option("resolution_number_of_sources_query_threshold", "enough", k.NumberKind(1, k.MAX_UINT32, "sources"),
           "number of known sources at which queries stop"),
    Option("resolution_no_source_notification_threshold", "report_after", k.NumberKind(0, k.MAX_UINT32, "queries"),
           "number of unanswered queries after which a receiver reports `NoSource`; 0: never"),
)
PATTERN = (
    Option("pattern_type", "kind", _LANGUAGES, "language of the pattern; regex is deprecated and read like pcre"),
    Option("resolver_query_minimum_interval", "pace.shortest", k.SPAN, "first interval; 0: no queries for patterns"),
    Option("resolver_query_maximum_interval", "pace.longest", k.SPAN, "longest interval; 0: no queries for patterns"),
    Option("resolver_query_minimum_duration", "pace.initial", k.SECONDS, "time of queries for patterns; 0: endless"),
    Option("resolver_no_source_linger_timeout", "linger", k.SPAN,
           "time after the last unanswered query until a topic of a pattern is left"),
)
# fmt: on


def _limit(name: str, field: str, plural: str) -> tuple[Option, Option]:
    records, bits = (f"config.limits.{field}.{kind}" for kind in ("records", "bits"))
    return (
        Option(f"resolver_{plural}_per_second", records, RATE, "limit of the whole context; 0: none"),
        Option(f"resolver_{name}_bps", bits, BITS, "limit of the whole context; 0: none"),
    )


def _relay(settings: ResolutionSettings, text: str) -> ResolutionSettings:
    if text == NOWHERE:
        return attrs.evolve(settings, relays=())
    end, where = _parted(text)
    relay = address.join(*address.parse_place(where))
    ends = settings.ends if end is None else {**settings.ends, relay: end}
    return attrs.evolve(settings, relays=(*settings.relays, relay), ends=ends)


def _service(settings: ResolutionSettings, text: str) -> ResolutionSettings:
    if text == NOWHERE:
        return attrs.evolve(settings, services=())
    end, where = _parted(text)
    services = parse_services([where])
    ends = settings.ends if end is None else {**settings.ends, services[0]: end}
    return attrs.evolve(settings, services=(*settings.services, *services), ends=ends)


def _parted(text: str) -> tuple[LocalEnd | None, str]:
    """Return the local end of `interface[:port]->address`, None without one, and the address. Raises OptionError."""
    local, arrow, where = text.rpartition("->")
    if not arrow:
        return None, text
    interface, _, port = local.partition(":")
    if not interface or (port and not (port.isascii() and port.isdecimal() and int(port) <= address.MAX_PORT)):
        raise k.OptionError(f"'{local}' is not a local end: write interface->ip:port or interface:port->ip:port")
    return LocalEnd(plain_interface(interface), int(port or 0)), where


def _old_address(settings: ResolutionSettings, text: str) -> ResolutionSettings:
    host = str(k.AddressKind().merge("resolver_unicast_address", None, text))
    return attrs.evolve(settings, old_relay=(host, settings.old_relay[1]))


def _old_port(settings: ResolutionSettings, text: str) -> ResolutionSettings:
    port = k.PORT.merge("resolver_unicast_destination_port", None, text)
    assert isinstance(port, int)
    return attrs.evolve(settings, old_relay=(settings.old_relay[0], port))


def _old_local_port(settings: ResolutionSettings, text: str) -> ResolutionSettings:
    port = k.PORT.merge("resolver_unicast_port", None, text)
    assert isinstance(port, int)
    unicast = attrs.evolve(settings.unicast, low=port, high=port) if port else settings.unicast
    return attrs.evolve(settings, unicast=unicast)


# fmt: off
CONTEXT = (
    Option("resolver_unicast_daemon", "", k.ListKind(_relay, "[interface[:port]->]ip:port"),
           "relays (lbmrd); 0.0.0.0:0 clears the list", "a relay switches multicast off"),
    Option("resolver_unicast_interface", "unicast.interface", k.TextKind("a.b.c.d[/n], device, host", plain_interface),
           "local interface of resolution through relays; 0.0.0.0: the interface of the context"),
    Option("resolver_unicast_port_low", "unicast.low", k.PORT, "first local port of resolution through relays"),
    Option("resolver_unicast_port_high", "unicast.high", k.PORT,
           "last local port; if none is free, any port", "each relay with a local end of its own needs one more"),
    Option("resolver_unicast_receiver_socket_buffer", "unicast.receive_buffer", k.NumberKind(0, 1 << 30, "bytes"),
           "0: the system's size"),
    Option("resolver_service", "", k.ListKind(_service, "[interface[:port]->]host:port"),
           "services (SRS), five at most; 0.0.0.0:0 clears the list", "a service does not switch UDP off"),
    Option("resolver_service_interest_mode", "flood", k.words(filter=False, flood=True),
           "sources that a service sends: wanted ones, or all of them"),
    Option("resolver_disable_udp_topic_resolution", "udp", k.numbers([True, False]), "1: do not resolve over UDP"),
    Option("resolver_domain_id", "config.domains.number", k.NumberKind(0, MAX_DOMAIN),
           "number of the domain of this context; 0: routers tell it", "it counts before what routers tell"),
    Option("resolver_domain_id_active_propagation_timeout", "config.domains.handed_on",
           k.NumberKind(-1, k.MAX_INT32, "s", SECOND),
           "-1: learn the number of the domain from any context; 0: from routers only; others: from contexts that "
           "heard a router within this time", "set the same value in all contexts of a domain"),
    Option("resolver_cache", "config.cache.on", k.FLAG, "keep a cache of advertised sources", "patterns need it"),
    Option("resolver_datagram_max_size", "config.datagrams.size", SIZE,
           "largest datagram; 0: send up to 1400 bytes where records share one, accept up to 8192",
           "set the same value in all contexts"),
    Option("resolver_source_datagram_max_size", "config.datagrams.sent", SIZE, "largest datagram that is sent"),
    Option("resolver_receiver_datagram_max_size", "config.datagrams.received", SIZE,
           "largest datagram that is accepted"),
    *_limit("initial_advertisement", "initial_advertisements", "initial_advertisements"),
    *_limit("sustain_advertisement", "sustaining_advertisements", "sustain_advertisements"),
    *_limit("initial_query", "initial_queries", "initial_queries"),
    *_limit("sustain_query", "sustaining_queries", "sustain_queries"),
    *_limit("wildcard_query", "pattern_queries", "wildcard_queries"),
    Option("resolver_context_name_query_minimum_interval", "config.names.pace.shortest", k.SPAN,
           "first interval; 0: no queries"),
    Option("resolver_context_name_query_maximum_interval", "config.names.pace.longest", k.SPAN,
           "longest interval; 0: no queries"),
    Option("resolver_context_name_query_duration", "config.names.pace.initial", k.SPAN,
           "time of queries; 0: until resolved"),
    Option("resolver_context_name_activity_timeout", "config.names.activity_timeout", k.SPAN,
           "silence after which a name is lost"),
    Option("resolver_unicast_keepalive_interval", "config.relays.keepalive", k.SPAN,
           "time between keepalives to a relay"),
    Option("resolver_unicast_activity_timeout", "config.relays.activity_timeout", k.SPAN,
           "0: relays are always active"),
    Option("resolver_unicast_check_interval", "config.relays.check", k.SPAN, "0: relays are always active"),
    Option("resolver_unicast_change_interval", "config.relays.change", k.SPAN,
           "approximate time for which one relay is used"),
    Option("resolver_unicast_force_alive", "config.relays.force_alive", k.FLAG,
           "use a relay without sources and receivers"),
    Option("resolver_unicast_ignore_unknown_source", "config.relays.only_ours", k.FLAG,
           "drop datagrams of other senders"),
    Option("resolver_multicast_incoming_address", "multicast.group", k.AddressKind(group=True),
           "group to read; 0.0.0.0: none"),
    Option("resolver_multicast_incoming_port", "multicast.port", k.PORT, "port of the group to read"),
    Option("resolver_multicast_interface", "multicast.interface", k.TextKind("a.b.c.d[/n], device, host"),
           "for all multicast"),
    Option("resolver_multicast_ttl", "multicast.ttl", k.NumberKind(0, 255),
           "number of routers that a datagram may pass"),
    Option("resolver_multicast_receiver_socket_buffer", "multicast.receive_buffer", k.NumberKind(0, 1 << 30, "bytes"),
           "0: the system's size"),
    *(option.below("config.advertise") for option in SOURCE),
    *(option.below("config.query") for option in RECEIVER),
    *(option.below("config.patterns") for option in PATTERN),
)
# fmt: on
"""The options of a context."""

OLD = {
    "resolver_unicast_address": ("resolver_unicast_daemon", _old_address),
    "resolver_unicast_destination_port": ("resolver_unicast_daemon", _old_port),
    "resolver_unicast_port": ("resolver_unicast_port_low and _high", _old_local_port),
}
"""Deprecated options of relays: the option to write instead, and the change that the old one makes."""

_BOTH_WAYS = ("resolver_multicast_address", "resolver_multicast_port")
_OUTGOING = ("resolver_multicast_outgoing_address", "resolver_multicast_outgoing_port")

ALL_CONTEXT_NAMES = frozenset({option.name for option in CONTEXT}.union(_BOTH_WAYS, _OUTGOING, OLD))
"""The names of all options of resolution that a context has."""

GroupT = TypeVar("GroupT", udp.AdvertiseOptions, udp.QueryOptions, udp.PatternOptions)
TABLES: Mapping[type, tuple[Option, ...]] = {
    udp.AdvertiseOptions: SOURCE,
    udp.QueryOptions: RECEIVER,
    udp.PatternOptions: PATTERN,
}


def strategy(name: str) -> ResolutionSettings:
    """Return the settings of a preset (T-301). Raises OptionError for an unknown name."""
    preset = PRESETS.get(name)
    if preset is None:
        raise k.OptionError(f"there is no resolution strategy '{name}': choose one of {', '.join(PRESETS)}")
    return ResolutionSettings(udp=False) if preset.config is None else ResolutionSettings(preset.config)


def configured(settings: ResolutionSettings, options: Mapping[str, k.Value]) -> ResolutionSettings:
    """Return the settings with options set, one after the other. Raises OptionError, AddressError.

    An option of a multicast group switches multicast on; `resolver_multicast_address` and `_port` set both directions.
    """
    for name, value in options.items():
        if name.startswith("resolver_multicast_") and settings.multicast is None:
            settings = attrs.evolve(settings, multicast=MulticastSettings())
        if name in _BOTH_WAYS:
            incoming = _find("resolver_multicast_incoming_" + name.rpartition("_")[2])
            settings = attrs.evolve(incoming, name=name).set(settings, value)
            assert settings.multicast is not None
            settings = attrs.evolve(settings, multicast=attrs.evolve(settings.multicast, outgoing=""))
        elif name in _OUTGOING:
            settings = _outgoing(settings, name, value)
        elif name in OLD:
            settings = OLD[name][1](settings, str(value))
        else:
            settings = _find(name).set(settings, value)
    return settings


def of_contexts(options: Mapping[str, k.Value]) -> tuple[dict[str, k.Value], dict[str, k.Value]]:
    """Return the options of resolution that a context has, and the other options."""
    ours = {name: value for name, value in options.items() if name in ALL_CONTEXT_NAMES}
    return ours, {name: value for name, value in options.items() if name not in ALL_CONTEXT_NAMES}


def with_old_relay(settings: ResolutionSettings) -> ResolutionSettings:
    """Return the settings with the relay of the deprecated options, if they name one, among the relays."""
    host, port = settings.old_relay
    if host == ANY:
        return settings
    return attrs.evolve(settings, relays=(*settings.relays, address.join(host, port)), old_relay=(ANY, port))


def notices(options: Mapping[str, k.Value]) -> tuple[str, ...]:
    return tuple(f"option {name} is deprecated: write {OLD[name][0]}" for name in options if name in OLD)


def own(defaults: GroupT, options: Mapping[str, k.Value]) -> tuple[GroupT, dict[str, k.Value]]:
    """Return the settings of a single source, receiver or pattern, and the options that are not of resolution.

    Raises:
        OptionError: A value is not allowed.
    """
    return set_known(TABLES[type(defaults)], defaults, options)


def _outgoing(settings: ResolutionSettings, name: str, value: k.Value) -> ResolutionSettings:
    group = settings.multicast
    assert group is not None
    host, _, port = (group.outgoing or address.join(group.group, group.port)).rpartition(":")
    if name.endswith("port"):
        port = str(k.PORT.merge(name, None, value))
    else:
        host = str(k.AddressKind(group=True).merge(name, None, value))
    return attrs.evolve(settings, multicast=attrs.evolve(group, outgoing=f"{host}:{port}"))


def _find(name: str) -> Option:
    table = {option.name: option for option in CONTEXT}
    if name not in table:
        raise k.OptionError(f"there is no resolution option '{name}': {suggestion(name, table)}")
    return table[name]
