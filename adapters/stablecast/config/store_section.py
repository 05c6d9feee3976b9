"""The plan of one store from its options and those of its topics (P-810..P-845)."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import attrs

from stablecast.config import library_options
from stablecast.config.daemon_outline import ConfigEntry, Given, StoreOutline, TopicOutline
from stablecast.config.daemon_section import intervals
from stablecast.config.disk_options import DISK_OPTIONS, DiskConfig, together
from stablecast.config.documented_options import documented_option, suggestion
from stablecast.config.findings import ConfigFindings, ConfigPlace
from stablecast.config.option_effects import Effect, effect_of
from stablecast.config.option_files import Setting
from stablecast.config.option_kinds import Value
from stablecast.config.options import ALIASES, apply, disk_options, notices
from stablecast.config.plan import StoreLimits, StorePlan, TopicPlan
from stablecast.config.profiles import Profile
from stablecast.config.setting_checks import option_notices
from stablecast.config.store_options import STORE_OPTIONS, TOPIC_OPTIONS
from stablecast.config.stores import NAME
from stablecast.config.topic_patterns import TYPES, expression
from stablecast.config.transport_options import OF_RECEIVERS, TransportConfig, split
from stablecast.core.protocol.settings import PatternType, RepositoryConfig, TopicPattern
from stablecast.runtime import address
from stablecast.runtime.interfaces import ANY, choose
from stablecast.runtime.ports import REQUEST_PORTS

MAX_DIRECTORY = 230
"""Longest name of a directory, in characters."""
MAX_LIMIT = 1 << 62
MAX_HOURS = 336
"""Largest value of restore-last."""
CACHE, STATE, NAMED = "disk-cache-directory", "disk-state-directory", "context-name"
PROXIES = "allow-proxy-source"
OF_THE_STORE = ("source-check-interval", "keepalive-interval", "proxy-election-interval")
"""Options that are documented for topics, but have one value for a whole store here: the smallest."""
STORE_LEVEL = frozenset(option.name for option in STORE_OPTIONS) - {*OF_THE_STORE, *library_options.RECEIVER}
"""Options that are documented for a store."""
TOPIC_LEVEL = frozenset(
    {option.name for option in (*TOPIC_OPTIONS, *DISK_OPTIONS)} | {*OF_THE_STORE, *ALIASES["topic"]}
)


@attrs.define
class LibraryOptions:
    """The options of the client library that a store follows, by scope."""

    context: dict[str, Value] = attrs.field(factory=dict)
    receiver: dict[str, Value] = attrs.field(factory=dict)
    source: dict[str, Value] = attrs.field(factory=dict)

    def add(self, scope: str, given: Given, found: ConfigFindings) -> None:
        """Add one option of the scope context, receiver or source, or report why not."""
        setting = Setting(scope, given.name, given.value, given.place.line)
        effect = effect_of(scope, given.name, given.value)
        if given.value not in ("", usual := library_options.DEADLY.get(given.name, given.value)):
            found.problem(given.place, f"a store works only with {given.name} {usual}: take it out")
        elif effect.effect is Effect.REFUSED and documented_option(scope, given.name) is not None:
            found.problem(given.place, effect.reason)
        elif not library_options.followed(scope, given.name):
            found.notice(given.place, library_options.comment(scope, given.name))
        elif found.tried(given.place, lambda: option_notices(setting)):
            getattr(self, scope)[ALIASES.get(scope, {}).get(given.name, given.name)] = given.value

    @property
    def transports(self) -> dict[str, Value]:
        """Return the options of transports that are set for the context: they hold for its receivers and proxies."""
        return {name: value for name, value in self.context.items() if name in library_options.OF_TRANSPORTS}

    def copy(self) -> "LibraryOptions":
        """Return a copy that can be changed."""
        return LibraryOptions(dict(self.context), dict(self.receiver), dict(self.source))


@attrs.define
class StoreBuilder:
    """Build the plan of one store; `wide` collects options of its topics that hold for the whole store."""

    profile: Profile
    defaults: tuple[Setting, ...]
    found: ConfigFindings
    wide: dict[str, Value] = attrs.field(factory=dict)

    def build(self, outline: StoreOutline) -> StorePlan:
        """Return the plan of the store; the plan is meaningless if there are problems."""
        found, place = self.found, outline.place
        asked = self._asked(outline)
        paths = self._paths(outline)
        host = found.attempt(place, ANY, lambda: choose(outline.interface or self._interface(asked)))
        port = found.number(outline.port, 0, address.MAX_PORT, place, "port")
        low, high = self._ports(asked, place)
        topics = tuple(self._topic(topic, outline, asked) for topic in outline.topics)
        if not outline.name:
            found.problem(place, "a store needs a name")
        if not topics:
            found.notice(place, f"store '{outline.name}' has no topics: it will refuse every source")
        own = {given.name: given.value for given in outline.options if given.name in STORE_LEVEL}
        base = attrs.evolve(self.profile.store, address=address.join(host, port), repository=None)
        none: dict[str, Value] = {}
        # Options of transports that a topic sets for its receivers hold for the whole store, like its other ones.
        of_receivers = {**asked.transports, **asked.receiver, **self.wide}
        transports, received = found.attempt(place, (TransportConfig(), none), lambda: split(of_receivers))
        for entry in _with_local_ends(asked.context):
            found.notice(place, f"the local end of {entry} has no effect at a store: its interface is used")
        config = found.attempt(place, base, lambda: apply("store", base, {**received, **own}))
        return StorePlan(
            name=outline.name,
            host=host,
            port=port,
            ports=(low, high),
            config=attrs.evolve(config, topics=tuple(topic.rule for topic in topics)),
            disk=together([topic.disk for topic in topics] or [self.profile.disk]),
            cache_directory=Path(paths[CACHE]),
            state_directory=Path(paths[STATE]),
            context_name=paths[NAMED],
            resolver=tuple(_entries(asked.context.get("resolver_unicast_daemon", ""))),
            resolver_service=tuple(_entries(asked.context.get("resolver_service", ""))),
            resolution=self._resolution(asked, place),
            topics=topics,
            limits=self._limits(outline),
            transports=transports,
            intervals=intervals(outline.publishing, found),
        )

    def _resolution(self, asked: LibraryOptions, place: ConfigPlace) -> Mapping[str, Value]:
        """Return the options of resolution other than relays and services."""
        given = {
            name: value
            for name, value in asked.context.items()
            if name.startswith(library_options.OF_RESOLUTION) and name not in library_options.CONTEXT
        }
        if given:
            from stablecast.config.resolution_options import ResolutionSettings, configured  # noqa: PLC0415 - few need it

            nothing = ResolutionSettings()
            self.found.attempt(place, nothing, lambda: configured(nothing, given))
        return given

    def _limits(self, outline: StoreOutline) -> StoreLimits:
        limits = StoreLimits()
        for given in outline.limits:
            field = given.name.replace("-", "_")
            if field not in attrs.fields_dict(StoreLimits):
                names = ", ".join(name.replace("_", "-") for name in attrs.fields_dict(StoreLimits))
                self.found.problem(given.place, f"there is no limit '{given.name}': there are {names}")
                continue
            number = self.found.number(given.value, 0, MAX_LIMIT, given.place, given.name)
            limits = attrs.evolve(limits, **{field: number})
        return limits

    def _asked(self, outline: StoreOutline) -> LibraryOptions:
        """Return the library options of the daemon's option file and of the store, which overrides it (P-849)."""
        asked = LibraryOptions()
        for setting in self.defaults:
            if setting.scope in ("context", "receiver", "source"):
                asked.add(setting.scope, Given("", setting.name, setting.value, setting.place), self.found)
        for given in outline.options:
            if given.scope == "lbm-context":
                asked.add("context", given, self.found)
            elif given.scope != "store":
                self.found.problem(given.place, f"options of type {given.scope} belong to a topic, not to a store")
        return asked

    def _paths(self, outline: StoreOutline) -> Mapping[str, str]:
        """Return the directories and the name; report other options that do not belong to a store."""
        paths = {CACHE: "umestored-cache", STATE: "umestored-state", NAMED: ""}
        for given in outline.options:
            if given.scope != "store" or given.name in STORE_LEVEL:
                continue
            if given.name not in paths:
                unknown = f"is not a store option: {suggestion(given.name, (*paths, *sorted(STORE_LEVEL)))}"
                where = "belongs to a topic, not to a store" if given.name in TOPIC_LEVEL else unknown
                self.found.problem(given.place, f"option '{given.name}' {where}")
            elif given.name == NAMED and not NAME.fullmatch(given.value):
                form = "1 to 128 letters, digits, hyphens and underscores"
                self.found.problem(given.place, f"{NAMED} '{given.value}' must be {form}")
            elif given.name != NAMED and not 0 < len(given.value) <= MAX_DIRECTORY:
                self.found.problem(given.place, f"{given.name} must have 1 to {MAX_DIRECTORY} characters")
            else:
                paths[given.name] = given.value
        return paths

    def _topic(self, outline: TopicOutline, store: StoreOutline, general: LibraryOptions) -> TopicPlan:
        found, place = self.found, outline.place
        asked = general.copy()
        own: dict[str, Value] = {}
        for given in outline.options:
            if given.scope == "lbm-context":
                found.problem(given.place, "options of type lbm-context belong to a store, not to a topic")
            elif given.scope != "store":
                asked.add(given.scope.removeprefix("lbm-"), given, found)
            elif given.name in OF_THE_STORE:
                self._widen(given)
            elif given.name in TOPIC_LEVEL:
                found.attempt(given.place, None, partial(_check, given))
                own[given.name] = given.value
            else:
                known = given.name in (CACHE, STATE, NAMED, *STORE_LEVEL)
                unknown = f"is not a topic option: {suggestion(given.name, sorted(TOPIC_LEVEL))}"
                where = "belongs to a store, not to a topic" if known else unknown
                found.problem(given.place, f"option '{given.name}' {where}")
        for name, value in asked.receiver.items():
            if general.receiver.get(name) != value:
                self._widen(Given("lbm-receiver", name, str(value), place))
        if found.problems:
            return TopicPlan(TopicPattern("", RepositoryConfig()), DiskConfig(), {})
        for text in notices("topic", own):
            found.notice(place, text)
        kind = TYPES.get(outline.kind.lower())
        if kind is None:
            found.problem(place, f"the type of a pattern must be direct, PCRE or regexp, not '{outline.kind}'")
        pattern = found.attempt(place, "", lambda: expression(outline.pattern, kind or PatternType.DIRECT))
        kept = apply("topic", self.profile.store.repository or RepositoryConfig(), own)
        of_proxies = {**asked.transports, **asked.source}
        found.attempt(place, None, lambda: apply("source", Profile().source, split(of_proxies)[1]))
        idle = [name for name in of_proxies if name not in OF_RECEIVERS]
        if idle and not any(given.name == PROXIES and given.value == "1" for given in store.options):
            text = "which this store does not allow (allow-proxy-source 0)"
            found.notice(place, f"{', '.join(idle)}: options of sources have effect in proxies only, {text}")
        return TopicPlan(
            TopicPattern(pattern, kept, kind or PatternType.DIRECT),
            apply("disk", self.profile.disk, disk_options(own)),
            of_proxies,
            self._hours(outline.restore_last or store.restore_last),
        )

    def _widen(self, given: Given) -> None:
        """Note an option of a topic that holds for the whole store: the smallest number counts."""
        name, before = given.name, self.wide.get(given.name)
        number = self.found.number(given.value, 0, 0xFFFF_FFFF, given.place, name)
        if before is not None and before != number:
            self.found.notice(given.place, f"{name} holds for the whole store: the smallest value of its topics counts")
            number = min(number, int(before))
        self.wide[name] = number

    def _hours(self, text: ConfigEntry | None) -> int:
        if text is None or text.attributes.get("behavior", "hours") == "none":
            return 0
        return self.found.number(text.attributes.get("value", "0"), 0, MAX_HOURS, text.place, "restore-last")

    def _interface(self, asked: LibraryOptions) -> str:
        wanted = asked.context.get("request_tcp_interface", asked.context.get("default_interface", ANY))
        return str(wanted).strip('"')

    def _ports(self, asked: LibraryOptions, place: ConfigPlace) -> tuple[int, int]:
        low, high = (
            self.found.number(str(asked.context.get(name, default)), 1, address.MAX_PORT, place, name)
            for name, default in zip(("request_tcp_port_low", "request_tcp_port_high"), REQUEST_PORTS, strict=True)
        )
        if low > high:
            self.found.problem(place, f"request_tcp_port_low {low} is above request_tcp_port_high {high}")
        return low, high


def _check(given: Given) -> None:
    apply("topic", RepositoryConfig(), {given.name: given.value})


def _with_local_ends(options: Mapping[str, Value]) -> Iterable[str]:
    """Return the entries of relays and services that name a local interface or port, which a store does not follow."""
    named = (options.get(name, "") for name in ("resolver_unicast_daemon", "resolver_service"))
    entries = (entry for value in named for entry in str(value).replace(",", " ").split())
    return (entry for entry in entries if entry.rpartition("->")[0] not in ("", ANY, f"{ANY}:0"))


def _entries(value: Value) -> Iterable[str]:
    """Return the addresses of a list option, without the `interface[:port]->` before an address."""
    return (entry.rpartition("->")[2] for entry in str(value).replace(",", " ").split())
