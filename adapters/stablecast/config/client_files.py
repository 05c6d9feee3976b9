"""The configuration files of a client: option files, XML and TOML, read as layers. Each option is checked.

Each option has an effect, a notice or an error. The variable STABLECAST_CONFIG names files below those of a call,
STABLECAST_CONFIG_APPLICATION and STABLECAST_CONFIG_CONTEXT the application and context of XML files.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from stablecast.config import client_toml, context_options, option_files, resolution_options, transport_options
from stablecast.config.checks import ClientOptions
from stablecast.config.client_configuration import ClientConfiguration, ConfigLayer, layered
from stablecast.config.findings import ConfigFileError, ConfigPlace, ConfigProblem
from stablecast.config.option_effects import Effect, effect_of, for_endpoint
from stablecast.config.option_files import Setting
from stablecast.config.option_kinds import Value
from stablecast.config.option_names import SAFE
from stablecast.config.options import GROUPS, apply, contradictions, notices
from stablecast.config.profiles import Profile, profile
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.transports.resolution.udp.settings import AdvertiseOptions, PatternOptions, QueryOptions

VARIABLE: Final = "STABLECAST_CONFIG"
"""The variable of the environment with names of files."""
SEPARATOR: Final = ":"
"""Separates the names of files, as in PATH."""
APPLICATION: Final = f"{VARIABLE}_APPLICATION"
CONTEXT: Final = f"{VARIABLE}_CONTEXT"
ENDPOINTS = ("source", "receiver")
MAX_FILES = 64
"""Files of one configuration."""


def from_environment() -> list[Path]:
    """Return the files that the environment names."""
    named = machine.process.environment.get(VARIABLE, "")
    return [Path(name) for name in named.split(SEPARATOR) if name]


def load(
    files: Sequence[Path], application: str = "", context: str = "", *, environment: bool = True
) -> ClientConfiguration:
    """Return the configuration of files, with those of the environment below them.

    Args:
        files: Option files, XML (`.xml`) and TOML (`.toml`) files.
        application: The application of XML files; empty: that of the environment, else the one without a name.
        context: The context of that application, likewise.
        environment: False ignores the environment.

    Raises:
        ConfigFileError: A file is wrong; the message has a line for each problem.
        FlatFileError: An option file has a malformed line.
        OSError: A file cannot be read.
    """
    paths = [*(from_environment() if environment else ()), *files]
    if environment:
        application = application or machine.process.environment.get(APPLICATION, "")
        context = context or machine.process.environment.get(CONTEXT, "")
    found = layers(paths, application, context)
    checked = [notice for layer in found for notice in _checked(layer)]
    return _with_conflicts(ClientConfiguration(found, tuple(checked)))


def layers(files: Sequence[Path], application: str = "", context: str = "") -> tuple[ConfigLayer, ...]:
    """Return the content of files in their order of precedence; their options are not checked. Raises like `load`."""
    if len(files) > MAX_FILES:
        raise StablecastError(f"{len(files)} configuration files are named: at most {MAX_FILES} can be read")
    return layered([_renamed(_layer(path, application, context)) for path in files])


def _layer(path: Path, application: str, context: str) -> ConfigLayer:
    if path.suffix.lower() == ".toml":
        return client_toml.load(path)
    if path.suffix.lower() == ".xml":
        from stablecast.config import client_xml  # noqa: PLC0415 - most clients have no XML, and the parser loads slowly

        return client_xml.load(path, client_xml.Selection(application, context))
    return ConfigLayer(str(path), option_files.read(path))


def _renamed(layer: ConfigLayer) -> ConfigLayer:
    """Return the layer with underscores for the hyphens of names: the guide prints some names with either (P-595)."""

    def plain(settings: Iterable[Setting]) -> tuple[Setting, ...]:
        return tuple(
            attrs.evolve(one, name=one.name.replace("-", "_"), hyphens="-" in one.name) if "-" in one.name else one
            for one in settings
        )

    sections = tuple(attrs.evolve(section, settings=plain(section.settings)) for section in layer.sections)
    return attrs.evolve(layer, settings=plain(layer.settings), sections=sections)


# -------------------------------------------------------------------------------------------------------------- checks


def _checked(layer: ConfigLayer) -> list[ConfigProblem]:
    """Return the notices about the options of a file. Raises ConfigFileError with all its problems."""
    problems: list[ConfigProblem] = []
    found: list[ConfigProblem] = []
    for setting in dict.fromkeys(layer.all_settings):
        place = ConfigPlace(setting.line, setting.name)
        try:
            texts = _notices(setting)
        except StablecastError as error:
            problems.append(ConfigProblem(place, str(error)))
        else:
            found += [ConfigProblem(place, text, layer.path) for text in texts]
    if problems:
        raise ConfigFileError(layer.path, problems)
    return found


def _notices(setting: Setting) -> list[str]:
    """Return the notices about one option. Raises StablecastError if its scope has no such option or no such value."""
    effect = effect_of(setting.scope, setting.name)
    texts = [f"write {setting.name}, with underscores"] if setting.hyphens else []
    if effect.effect is Effect.UNKNOWN:
        raise StablecastError(effect.reason)
    if effect.effect is Effect.UNHEEDED:
        return [*texts, f"{setting.name} has no effect: {effect.reason}"]
    given: dict[str, Value] = {setting.name: setting.value}
    if setting.scope == "context":
        texts += _tried_in_context(given)
    elif setting.scope == "wildcard_receiver":
        resolution_options.own(PatternOptions(), given)
    else:
        texts += _tried(setting.scope, given)
    return texts


def _tried_in_context(given: dict[str, Value]) -> list[str]:
    """Set an option of a context in a configuration that is thrown away; return the notices. Raises like the option."""
    resolved, others = resolution_options.of_contexts(given)
    resolution_options.configured(ResolutionSettings(), resolved)
    others = context_options.split(others)[1]
    texts = list(resolution_options.notices(resolved))
    for kind in ENDPOINTS:
        ours = {name: value for name, value in others.items() if for_endpoint(kind, name)}
        texts += [text for text in _tried(kind, ours) if text not in texts]
    return texts


def _tried(kind: str, given: dict[str, Value]) -> list[str]:
    """Set an option of a source or receiver, likewise. The size of a group is tried as that of the first group."""
    _, others = transport_options.split(_rest(kind, given))
    if GROUPS in others:
        others = {GROUPS: re.sub(r"^\d+:", "0:", str(others[GROUPS]))}
    if kind == "source":
        apply(kind, Profile().source, others)
    else:
        apply(kind, Profile().receiver, others)
    return list(notices(kind, others))


def _with_conflicts(found: ClientConfiguration) -> ClientConfiguration:
    """Return the configuration with notices about options of one endpoint that contradict each other (P-345)."""
    texts = dict.fromkeys(text for kind in ENDPOINTS for text in contradictions(kind, found.of_endpoint(kind)))
    path = found.layers[-1].path if found.layers else ""
    more = tuple(ConfigProblem(ConfigPlace(0, "options"), text, path) for text in texts)
    return attrs.evolve(found, notices=(*found.notices, *more))


def load_clients(path: Path, profile_name: str = SAFE) -> list[ClientOptions]:
    """Return what one file of a client describes, for all topics and for each section. Raises like `load`."""
    found = load([path], environment=False)
    general = _client(found, str(path), None, profile(profile_name), found.notices)
    sections = (_client(found, f'{path}: topic "{topic}"', topic, profile(profile_name), ()) for topic in found.topics)
    return [general, *sections]


def _client(
    found: ClientConfiguration,
    where: str,
    topic: str | None,
    defaults: Profile,
    notices: tuple[ConfigProblem, ...],
) -> ClientOptions:
    chosen = found.of_endpoint("source", topic)
    transport, others = transport_options.split(chosen, defaults.transport)
    source = apply("source", attrs.evolve(defaults.source, topic="topic"), _rest("source", others))
    receiving = transport_options.split(found.of_endpoint("receiver", topic), transport)
    receiver = apply("receiver", defaults.receiver, _rest("receiver", receiving[1]))
    return ClientOptions(where, source, receiver, receiving[0], notices)


def _rest(kind: str, options: dict[str, Value]) -> dict[str, Value]:
    """Return the options that are not of resolution. Raises OptionError for a wrong value of one that is."""
    if kind == "source":
        return resolution_options.own(AdvertiseOptions(), options)[1]
    return resolution_options.own(QueryOptions(), options)[1]
