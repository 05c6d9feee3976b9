"""The configuration of a client from its files: options by scope and topic, in their documented order.

Files are layers. An XML file lies below an option file, whatever the order in which they are named: an option file
overrides the XML file that many applications share. Files of one form override the files before them. In a layer, the
section of a topic overrides what holds for all topics. The application overrides all files.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from stablecast.config.context_options import CONTEXT_OPTIONS, ContextConfig, split
from stablecast.config.documented_options import documented_option
from stablecast.config.findings import ConfigProblem
from stablecast.config.option_effects import Effect, effect_of, for_endpoint
from stablecast.config.option_files import Setting
from stablecast.config.option_kinds import OptionError, Value, plain
from stablecast.config.options import ALIASES
from stablecast.config.resolution_options import ALL_CONTEXT_NAMES, of_contexts

ENDPOINTS = ("source", "receiver")
LISTS = frozenset({"ume_store", "ume_store_name", "ume_store_group", "resolver_unicast_daemon", "resolver_service"})
"""Options whose values append (P-850); the others are replaced."""


@attrs.frozen
class TopicSection:
    """The options of some topics in one scope: of one topic by its `name`, or of those that `pattern` matches."""

    scope: str
    settings: tuple[Setting, ...]
    name: str = ""
    pattern: str = ""

    def matches(self, topic: str) -> bool:
        return bool(self.pattern) and re.search(self.pattern, topic) is not None


@attrs.frozen
class TopicRule:
    """A rule about the topics of a scope: whether one topic, or those of a pattern, may be used."""

    allowed: bool
    name: str = ""
    pattern: str = ""

    def matches(self, topic: str) -> bool:
        return topic == self.name if self.name else re.search(self.pattern, topic) is not None


@attrs.frozen
class Restriction:
    """The topics that a scope permits: the last matching rule decides, and `otherwise` without one."""

    where: str
    otherwise: bool
    rules: tuple[TopicRule, ...]

    def permits(self, topic: str) -> bool:
        return next((rule.allowed for rule in reversed(self.rules) if rule.matches(topic)), self.otherwise)


@attrs.frozen
class ValueRule:
    """The values that an option may have: the last rule with the value decides, and `otherwise` without one."""

    scope: str
    name: str
    where: str
    otherwise: bool
    values: tuple[tuple[bool, str], ...]

    def check(self, value: Value) -> None:
        """Raise OptionError if the option may not have this value."""
        given = plain(value)
        rules = (allowed for allowed, one in reversed(self.values) if one.lower() == given.lower())
        if not next(rules, self.otherwise):
            raise OptionError(f"option {self.name} may not be '{given}': {self.where} denies it")


@attrs.frozen
class ConfigLayer:
    """The content of one file for one application and one of its contexts."""

    path: str
    settings: tuple[Setting, ...] = ()
    sections: tuple[TopicSection, ...] = ()
    restrictions: Mapping[str, Restriction] = attrs.field(factory=dict)
    values: tuple[ValueRule, ...] = ()
    problems: tuple[ConfigProblem, ...] = ()

    def of(self, scope: str, topic: str | None) -> list[Setting]:
        """Return the settings of a scope, for all topics, and then those of the section of `topic`.

        The section with the name of the topic wins; else the first whose pattern matches it. A pattern itself stands
        for the topics of its section.
        """
        found = [setting for setting in self.settings if setting.scope == scope]
        if topic is None:
            return found
        sections = [section for section in self.sections if section.scope == scope]
        named = (section for section in sections if topic in (section.name, section.pattern))
        section = next(named, None) or next((one for one in sections if one.matches(topic)), None)
        return found + list(section.settings if section else ())

    @property
    def all_settings(self) -> tuple[Setting, ...]:
        return (*self.settings, *(setting for section in self.sections for setting in section.settings))


@attrs.frozen
class ClientConfiguration:
    """The layers of a client's configuration, the lowest first, and the notices about them.

    `stablecast.config.client_files.load` reads it and checks every option.
    """

    layers: tuple[ConfigLayer, ...] = ()
    notices: tuple[ConfigProblem, ...] = ()

    def of(self, scope: str, topic: str | None = None) -> dict[str, Value]:
        """Return the options of a scope that are followed, for one topic, or for all topics.

        The scopes are context, source, receiver and wildcard_receiver.
        """
        found = merged(setting for layer in self.layers for setting in layer.of(scope, topic))
        return {name: value for name, value in found.items() if effect_of(scope, name, value).effect is Effect.FOLLOWED}

    @property
    def topics(self) -> list[str]:
        sections = (section for layer in self.layers for section in layer.sections)
        return list(dict.fromkeys(section.name or section.pattern for section in sections))

    def above(self, scope: str, options: Mapping[str, Value]) -> "ClientConfiguration":
        """Return the configuration with these options above all files."""
        settings = tuple(Setting(scope, name, plain(value), 0) for name, value in options.items())
        return attrs.evolve(self, layers=(*self.layers, ConfigLayer("", settings)))

    def of_context(self) -> tuple[dict[str, Value], ContextConfig]:
        """Return the options of resolution, and the configuration of the context itself."""
        resolved, others = of_contexts(self.of("context"))
        return resolved, split(others)[0]

    def of_endpoint(self, scope: str, topic: str | None = None) -> dict[str, Value]:
        """Return the options of a source or receiver: those of the context that are for it too, and its own."""
        _, others = of_contexts(self.of("context"))
        shared = {name: value for name, value in split(others)[1].items() if for_endpoint(scope, name)}
        return overridden(shared, self.of(scope, topic))

    def check(self, scope: str, topic: str | None, options: Mapping[str, Value]) -> None:
        """Check what an application uses against the rules of the files.

        Raises:
            OptionError: A file denies the topic, or the value of an option.
        """
        for layer in self.layers:
            limits = layer.restrictions.get(scope)
            if topic is not None and limits is not None and not limits.permits(topic):
                raise OptionError(f"the topic '{topic}' is not permitted for a {scope}: {limits.where} denies it")
            for rule in layer.values:
                if rule.scope == scope and rule.name in options:
                    rule.check(options[rule.name])


def says_nothing(setting: Setting) -> bool:
    """Return whether this is the empty default of a list, or of the old name of an option."""
    return not setting.value and (setting.name in LISTS or setting.name in ALIASES.get(setting.scope, ()))


def of_context(name: str) -> bool:
    """Return whether only a context has this option, in effect or not."""
    if name in ALL_CONTEXT_NAMES or any(option.name == name for option in CONTEXT_OPTIONS):
        return True
    elsewhere = any(for_endpoint(scope, name) or documented_option(scope, name) for scope in ENDPOINTS)
    return documented_option("context", name) is not None and not elsewhere


def merged(settings: Iterable[Setting]) -> dict[str, Value]:
    """Return options by name: a later value replaces an earlier one, and joins it for a list.

    An option keeps the place of its last line, because of some options the last one set wins (P-345).
    """
    options: dict[str, Value] = {}
    for setting in settings:
        before = options.pop(setting.name, None)
        joined = setting.name in LISTS and before is not None
        options[setting.name] = f"{before},{setting.value}" if joined else setting.value
    return options


def overridden(options: Mapping[str, Value], others: Mapping[str, Value]) -> dict[str, Value]:
    """Return options with others above them, by the rules of `merged`."""
    given = (Setting("", name, plain(value), 0) for name, value in [*options.items(), *others.items()])
    return merged(given)


def layered(layers: Sequence[ConfigLayer]) -> tuple[ConfigLayer, ...]:
    """Return layers in their order of precedence: XML files first, because option files override them."""
    return tuple(sorted(layers, key=lambda layer: not layer.path.lower().endswith(".xml")))


NO_FILES = ClientConfiguration()
"""The configuration of an application that reads no files."""
