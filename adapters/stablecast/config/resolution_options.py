"""The documented options of resolution, by name: of a context, and of single sources, receivers and patterns (T-003).

What is set for a context under the name of a source's, receiver's or wildcard receiver's option holds for all of them
that have nothing of their own.
"""

import ipaddress
from collections.abc import Mapping
from typing import TypeVar

import attrs

from stablecast.config.option import Option
from stablecast.config.option_kinds import Entries, Flag, OptionError, Value, Whole, numbers
from stablecast.config.options import suggestion
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime import address
from stablecast.runtime.resolution_group import MulticastSettings
from stablecast.runtime.service_addresses import parse_services
from stablecast.transports.resolution.udp.presets import PRESETS
from stablecast.transports.resolution.udp.settings import (
    MIN_DATAGRAM,
    SAFE,
    AdvertiseOptions,
    PatternOptions,
    QueryOptions,
    ResolutionConfig,
)

NOWHERE = "0.0.0.0:0"
"""In a list of addresses: forget those before."""

MAX_UINT32 = 0xFFFF_FFFF
MAX_RATE = 1 << 50
MAX_DATAGRAM_OPTION = 65_535


@attrs.frozen
class ResolutionSettings:
    """How a context finds sources, and is found.

    Attributes:
        config: Phases, limits, caches.
        relays: Addresses of lbmrds; with any, multicast is off (T-008).
        services: Addresses of services (SRS).
        multicast: The group; None: no multicast.
        udp: Whether anything is resolved over UDP.
    """

    config: ResolutionConfig = SAFE
    relays: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    multicast: MulticastSettings | None = None
    udp: bool = True


@attrs.frozen
class Address:
    """An IPv4 address."""

    type: str = "address"
    unit: str = ""
    allowed: str = "a.b.c.d"

    def merge(self, name: str, before: object, value: Value) -> object:
        """The address. Raises OptionError."""
        try:
            return str(ipaddress.IPv4Address(value))
        except ValueError:
            raise OptionError(f"option {name} wants an IPv4 address, not '{value}'") from None

    def show(self, field: str) -> str:
        """The address."""
        return field


@attrs.frozen
class Text:
    """Words that are looked at later."""

    allowed: str
    type: str = "text"
    unit: str = ""

    def merge(self, name: str, before: object, value: Value) -> object:
        """The words."""
        return str(value)

    def show(self, field: str) -> str:
        """The words."""
        return field


MS = Whole(0, MAX_UINT32, "ms", MILLISECOND)
S = Whole(0, MAX_UINT32, "s", SECOND)
RATE = Whole(0, MAX_RATE, "per second")
BITS = Whole(0, MAX_RATE, "bit/s")
COUNT = Whole(0, MAX_UINT32)
PORT = Whole(0, address.MAX_PORT)


@attrs.frozen
class Size(Whole):
    """Bytes of a datagram; 0: not set."""

    @property
    def allowed(self) -> str:
        """0, and the range."""
        return f"0, {self.low}..{self.high}"

    def merge(self, name: str, before: object, value: Value) -> object:
        """The bytes."""
        return 0 if str(value).strip() == "0" else super().merge(name, before, value)


SIZE = Size(MIN_DATAGRAM, MAX_DATAGRAM_OPTION, "bytes")

SOURCE = (
    Option("resolver_advertisement_minimum_initial_interval", "pace.shortest", MS, "first interval; 0: no such phase"),
    Option("resolver_advertisement_maximum_initial_interval", "pace.longest", MS, "longest interval; 0: no such phase"),
    Option("resolver_advertisement_minimum_initial_duration", "pace.initial", MS, "length of the phase; 0: endless"),
    Option("resolver_advertisement_sustain_interval", "pace.sustain", MS, "sustaining interval; 0: no such phase"),
    Option("resolver_advertisement_minimum_sustain_duration", "pace.sustaining", S, "its length; 0: endless"),
    Option("resolver_send_initial_advertisement", "at_creation", Flag(), "advertise once at creation"),
    Option("resolver_advertisement_send_immediate_response", "at_once", Flag(), "answer queries at once"),
    Option("resolver_send_final_advertisements", "at_end", Flag(), "say it when a source is no more"),
)
RECEIVER = (
    Option("resolver_query_minimum_initial_interval", "pace.shortest", MS, "first interval; 0: no such phase"),
    Option("resolver_query_maximum_initial_interval", "pace.longest", MS, "longest interval; 0: no such phase"),
    Option("resolver_query_minimum_initial_duration", "pace.initial", MS, "length of the phase; 0: endless"),
    Option("resolver_query_sustain_interval", "pace.sustain", MS, "sustaining interval; 0: no such phase"),
    Option("resolver_query_minimum_sustain_duration", "pace.sustaining", S, "its length; 0: endless"),
    Option(
        "resolution_number_of_sources_query_threshold",
        "enough",
        Whole(1, MAX_UINT32, "sources"),
        "known sources at which asking stops",
    ),
    Option(
        "resolution_no_source_notification_threshold",
        "report_after",
        Whole(0, MAX_UINT32, "queries"),
        "unanswered queries that are told of; 0: never",
    ),
)
PATTERN = (
    Option("resolver_query_minimum_interval", "pace.shortest", MS, "first interval; 0: patterns are not asked for"),
    Option("resolver_query_maximum_interval", "pace.longest", MS, "longest interval; 0: patterns are not asked for"),
    Option("resolver_query_minimum_duration", "pace.initial", S, "how long patterns are asked for; 0: endless"),
    Option("resolver_no_source_linger_timeout", "linger", MS, "until a lost topic is left"),
)


def _limit(name: str, field: str, plural: str) -> tuple[Option, Option]:
    records, bits = (f"config.limits.{field}.{kind}" for kind in ("records", "bits"))
    return (
        Option(f"resolver_{plural}_per_second", records, RATE, "by the whole context; 0: no limit"),
        Option(f"resolver_{name}_bps", bits, BITS, "by the whole context; 0: no limit"),
    )


def _relay(settings: ResolutionSettings, text: str) -> ResolutionSettings:
    if text == NOWHERE:
        return attrs.evolve(settings, relays=())
    return attrs.evolve(settings, relays=(*settings.relays, address.join(*address.parse(text))))


def _service(settings: ResolutionSettings, text: str) -> ResolutionSettings:
    if text == NOWHERE:
        return attrs.evolve(settings, services=())
    return attrs.evolve(settings, services=(*settings.services, *parse_services([text])))


CONTEXT = (
    Option(
        "resolver_unicast_daemon",
        "",
        Entries(_relay, lambda settings: len(settings.relays), "ip:port"),
        "relays (lbmrd); 0.0.0.0:0 clears them",
        "switches multicast off (T-008)",
    ),
    Option(
        "resolver_service",
        "",
        Entries(_service, lambda settings: len(settings.services), "host:port"),
        "services (SRS), up to five; 0.0.0.0:0 clears them",
        "does not switch UDP off",
    ),
    Option("resolver_disable_udp_topic_resolution", "udp", numbers([True, False]), "1: nothing over UDP"),
    Option("resolver_cache", "config.cache.on", Flag(), "remember sources", "patterns need it"),
    Option(
        "resolver_datagram_max_size",
        "config.datagrams.size",
        SIZE,
        "largest datagram; 0: 1400 where records share one, 8192 are taken",
        "the same everywhere",
    ),
    Option("resolver_source_datagram_max_size", "config.datagrams.sent", SIZE, "largest that is sent instead"),
    Option("resolver_receiver_datagram_max_size", "config.datagrams.received", SIZE, "largest that is taken instead"),
    *_limit("initial_advertisement", "initial_advertisements", "initial_advertisements"),
    *_limit("sustain_advertisement", "sustaining_advertisements", "sustain_advertisements"),
    *_limit("initial_query", "initial_queries", "initial_queries"),
    *_limit("sustain_query", "sustaining_queries", "sustain_queries"),
    *_limit("wildcard_query", "pattern_queries", "wildcard_queries"),
    Option("resolver_context_name_query_minimum_interval", "config.names.pace.shortest", MS, "first; 0: do not ask"),
    Option("resolver_context_name_query_maximum_interval", "config.names.pace.longest", MS, "longest; 0: do not ask"),
    Option("resolver_context_name_query_duration", "config.names.pace.initial", MS, "0: until resolved"),
    Option(
        "resolver_context_name_activity_timeout", "config.names.activity_timeout", MS, "silence until a name is lost"
    ),
    Option("resolver_unicast_keepalive_interval", "config.relays.keepalive", MS, "between signs of life to a relay"),
    Option("resolver_unicast_activity_timeout", "config.relays.activity_timeout", MS, "0: relays are always active"),
    Option("resolver_unicast_check_interval", "config.relays.check", MS, "0: relays are always active"),
    Option("resolver_unicast_change_interval", "config.relays.change", MS, "about how long one relay is used"),
    Option(
        "resolver_unicast_force_alive", "config.relays.force_alive", Flag(), "sign on without sources and receivers"
    ),
    Option("resolver_unicast_ignore_unknown_source", "config.relays.only_ours", Flag(), "drop what others send"),
    Option("resolver_multicast_incoming_address", "multicast.group", Address(), "group listened to; 0.0.0.0: none"),
    Option("resolver_multicast_incoming_port", "multicast.port", PORT, "port listened to"),
    Option(
        "resolver_multicast_interface", "multicast.interface", Text("a.b.c.d[/n], device, host"), "of all multicast"
    ),
    Option("resolver_multicast_ttl", "multicast.ttl", Whole(0, 255), "routers that may be passed"),
    Option(
        "resolver_multicast_receiver_socket_buffer",
        "multicast.receive_buffer",
        Whole(0, 1 << 30, "bytes"),
        "0: the system's",
    ),
    Option("resolver_receiver_map_tablesz", None, COUNT, "taken and not needed: tables grow by themselves (T-014)"),
    Option("resolver_source_map_tablesz", None, COUNT, "taken and not needed: tables grow by themselves (T-014)"),
    *(option.below("config.advertise") for option in SOURCE),
    *(option.below("config.query") for option in RECEIVER),
    *(option.below("config.patterns") for option in PATTERN),
)
"""What a context may be told."""

_BOTH_WAYS = ("resolver_multicast_address", "resolver_multicast_port")
_OUTGOING = ("resolver_multicast_outgoing_address", "resolver_multicast_outgoing_port")

GroupT = TypeVar("GroupT", AdvertiseOptions, QueryOptions, PatternOptions)
TABLES: Mapping[type, tuple[Option, ...]] = {AdvertiseOptions: SOURCE, QueryOptions: RECEIVER, PatternOptions: PATTERN}


def strategy(name: str) -> ResolutionSettings:
    """The settings of a preset (T-301). Raises OptionError for a name that is none."""
    preset = PRESETS.get(name)
    if preset is None:
        raise OptionError(f"there is no resolution strategy '{name}': choose one of {', '.join(PRESETS)}")
    return ResolutionSettings(udp=False) if preset.config is None else ResolutionSettings(preset.config)


def configured(settings: ResolutionSettings, options: Mapping[str, Value]) -> ResolutionSettings:
    """The settings with options set, one after the other. Raises OptionError, AddressError.

    An option of a multicast group switches multicast on; `resolver_multicast_address` and `_port` set both directions.
    """
    for name, value in options.items():
        if name.startswith("resolver_multicast_") and settings.multicast is None:
            settings = attrs.evolve(settings, multicast=MulticastSettings())
        if name in _BOTH_WAYS:
            settings = _find("resolver_multicast_incoming_" + name.rpartition("_")[2]).set(settings, value)
            assert settings.multicast is not None
            settings = attrs.evolve(settings, multicast=attrs.evolve(settings.multicast, outgoing=""))
        elif name in _OUTGOING:
            settings = _outgoing(settings, name, value)
        else:
            settings = _find(name).set(settings, value)
    return settings


def of_contexts(options: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """The options that are about resolution, which a context takes, and the others."""
    names = {option.name for option in CONTEXT}.union(_BOTH_WAYS, _OUTGOING)
    ours = {name: value for name, value in options.items() if name in names}
    return ours, {name: value for name, value in options.items() if name not in names}


def own(defaults: GroupT, options: Mapping[str, Value]) -> tuple[GroupT, dict[str, Value]]:
    """What options say of a single source, receiver or pattern, and the options that are about something else.

    Raises:
        OptionError: A value that cannot be.
    """
    table = {option.name: option for option in TABLES[type(defaults)]}
    others: dict[str, Value] = {}
    for name, value in options.items():
        if name in table:
            defaults = table[name].set(defaults, value)
        else:
            others[name] = value
    return defaults, others


def _outgoing(settings: ResolutionSettings, name: str, value: Value) -> ResolutionSettings:
    group = settings.multicast
    assert group is not None
    host, _, port = (group.outgoing or address.join(group.group, group.port)).rpartition(":")
    if name.endswith("port"):
        port = str(PORT.merge(name, None, value))
    else:
        host = str(Address().merge(name, None, value))
    return attrs.evolve(settings, multicast=attrs.evolve(group, outgoing=f"{host}:{port}"))


def _find(name: str) -> Option:
    table = {option.name: option for option in CONTEXT}
    if name not in table:
        raise OptionError(f"there is no resolution option '{name}': {suggestion(name, table)}")
    return table[name]
