"""The configuration files of a client: option files, XML and TOML, read as layers. Each option is checked.

Each option has an effect, a notice or an error. The variable STABLECAST_CONFIG names files below those of a call,
STABLECAST_CONFIG_APPLICATION and STABLECAST_CONFIG_CONTEXT the application and context of XML files.

TOML has the options of each scope, and sections of topics:

[context]
resolver_unicast_daemon = "127.0.0.1:15380"

[source]
ume_store = ["127.0.0.1:14567", "127.0.0.1:14568", "127.0.0.1:14569"]

[receiver]
use_late_join = true

[[topic]]
name = "orders"                     # or pattern = "^orders"
source = { ume_flight_size = 500 }
receiver = { ume_explicit_ack_only = true }
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.config import option_files, transport_options
from stablecast.config.checks import ClientOptions
from stablecast.config.client_configuration import (
    ENDPOINTS,
    ClientConfiguration,
    ConfigLayer,
    TopicSection,
    layered,
    says_nothing,
)
from stablecast.config.findings import ConfigFileError, ConfigFindings, ConfigPlace, ConfigProblem
from stablecast.config.option_files import SCOPES, Setting
from stablecast.config.option_kinds import plain
from stablecast.config.option_names import SAFE
from stablecast.config.options import apply, contradictions
from stablecast.config.profiles import Profile, profile
from stablecast.config.resolution_options import ResolutionSettings, configured, own
from stablecast.config.setting_checks import of_endpoints, option_notices
from stablecast.config.toml_file import read
from stablecast.config.topic_patterns import expression
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.settings import PatternType
from stablecast.runtime import machine

VARIABLE: Final = "STABLECAST_CONFIG"
"""The variable of the environment with names of files."""
SEPARATOR: Final = ":"
"""Separates the names of files, as in PATH."""
APPLICATION: Final = f"{VARIABLE}_APPLICATION"
CONTEXT: Final = f"{VARIABLE}_CONTEXT"
MAX_FILES = 64
"""Files of one configuration."""


def from_environment() -> list[Path]:
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
        OSError: A file cannot be read.
    """
    paths = [*(from_environment() if environment else ()), *files]
    if environment:
        application = application or machine.process.environment.get(APPLICATION, "")
        context = context or machine.process.environment.get(CONTEXT, "")
    found = layers(paths, application, context)
    problems: list[ConfigProblem] = []
    checked = [notice for layer in found for notice in _checked(layer, problems)]
    if problems:
        raise ConfigFileError(found[0].path, problems)
    return _with_conflicts(ClientConfiguration(found, tuple(checked)))


def layers(files: Sequence[Path], application: str = "", context: str = "") -> tuple[ConfigLayer, ...]:
    """Return the content of files in their order of precedence; their options are not checked. Raises like `load`."""
    if len(files) > MAX_FILES:
        raise StablecastError(f"{len(files)} configuration files are named: at most {MAX_FILES} can be read")
    return layered([_renamed(_layer(path, application, context)) for path in files])


def _layer(path: Path, application: str, context: str) -> ConfigLayer:
    if path.suffix.lower() == ".toml":
        return _of_toml(read(path), str(path))
    if path.suffix.lower() == ".xml":
        from stablecast.config import client_xml  # noqa: PLC0415 - most clients have no XML, and the parser loads slowly

        return client_xml.load(path, client_xml.Selection(application, context))
    lines = option_files.read(path)
    return ConfigLayer(str(path), lines.settings, problems=lines.problems)


def _renamed(layer: ConfigLayer) -> ConfigLayer:
    """Return the layer with underscores for the hyphens of names: the guide prints some names with either (P-595)."""

    def underscored(settings: Iterable[Setting]) -> tuple[Setting, ...]:
        named = (
            attrs.evolve(one, name=one.name.replace("-", "_"), hyphens="-" in one.name) if "-" in one.name else one
            for one in settings
        )
        return tuple(one for one in named if not says_nothing(one))

    sections = tuple(attrs.evolve(section, settings=underscored(section.settings)) for section in layer.sections)
    return attrs.evolve(layer, settings=underscored(layer.settings), sections=sections)


# -------------------------------------------------------------------------------------------------------------- checks


def _checked(layer: ConfigLayer, problems: list[ConfigProblem]) -> list[ConfigProblem]:
    """Return the notices about the options of a file, and add its problems."""
    problems += layer.problems
    found: list[ConfigProblem] = []
    for setting in dict.fromkeys(layer.all_settings):
        try:
            found += [ConfigProblem(setting.place, text) for text in option_notices(setting)]
        except StablecastError as error:
            problems.append(ConfigProblem(setting.place, str(error)))
    return found


def _with_conflicts(found: ClientConfiguration) -> ClientConfiguration:
    """Return the configuration with notices about options of one endpoint that contradict each other (P-345)."""
    texts = dict.fromkeys(text for kind in ENDPOINTS for text in contradictions(kind, found.of_endpoint(kind)))
    path = found.layers[-1].path if found.layers else ""
    more = tuple(ConfigProblem(ConfigPlace(0, "options", path), text) for text in texts)
    return attrs.evolve(found, notices=(*found.notices, *more))


def load_clients(
    path: Path,
    profile_name: str = SAFE,
    application: str = "",
    context: str = "",
    problems: list[ConfigProblem] | None = None,
) -> list[ClientOptions]:
    """Return what one file of a client describes: each application, context and section of topics has an entry.

    Args:
        path: The file.
        profile_name: The profile with the defaults.
        application: Name of an application; empty: that of the environment, else all of the file.
        context: Name of a context of it, likewise.
        problems: Gets what is wrong in one of several contexts, which hides no other; None: raise it.

    Raises like `load`.
    """
    clients: list[ClientOptions] = []
    wrong: dict[ConfigProblem, None] = {}
    told: set[ConfigProblem] = set()
    for chosen, name in _contexts(path, application, context):
        try:
            found = load([path], *chosen, environment=False)
        except ConfigFileError as error:
            wrong |= dict.fromkeys(error.problems)
            continue
        notices = tuple(notice for notice in found.notices if notice not in told)
        told.update(notices)
        where = f"{path}{name}"
        clients.append(_client(found, where, None, profile(profile_name), notices))
        clients += (_client(found, f'{where}: topic "{one}"', one, profile(profile_name), ()) for one in found.topics)
    if wrong and problems is None:
        raise ConfigFileError(str(path), list(wrong))
    if problems is not None:
        problems += wrong
    return clients


def _contexts(path: Path, application: str, context: str) -> list[tuple[tuple[str, str], str]]:
    """Return the application and the context of each part of a file, with its name for people."""
    environment = machine.process.environment
    asked = (application or environment.get(APPLICATION, ""), context or environment.get(CONTEXT, ""))
    if path.suffix.lower() != ".xml":
        return [(asked, "")]
    from stablecast.config import client_xml  # noqa: PLC0415 - see above

    found = client_xml.Selection(*asked).all_of(path)
    return [((one.application, one.context), name) for one, name in found]


def _client(
    found: ClientConfiguration,
    where: str,
    topic: str | None,
    defaults: Profile,
    notices: tuple[ConfigProblem, ...],
) -> ClientOptions:
    chosen = found.of_endpoint("source", topic)
    transport, others = transport_options.split(chosen, defaults.transport)
    source = apply("source", attrs.evolve(defaults.source, topic="topic"), of_endpoints("source", others))
    receiving = transport_options.split(found.of_endpoint("receiver", topic), transport)
    receiver = apply("receiver", defaults.receiver, of_endpoints("receiver", receiving[1]))
    resolved, context = found.of_context()
    resolution = configured(ResolutionSettings(), resolved)
    query, _ = own(resolution.config.query, found.of_endpoint("receiver", topic))
    return ClientOptions(where, source, receiver, receiving[0], notices, context.binds, resolution, query)


TOPICS = "topic"
OF_TOPICS = ("source", "receiver", "wildcard_receiver")
"""The scopes whose options a section of topics may have."""


def _of_toml(tables: Mapping[str, Any], where: str) -> ConfigLayer:
    """Return the options of tables. Raises ConfigFileError, which names the file as `where`."""
    found = _ClientToml(path=where)
    found.keys(tables, {*SCOPES, TOPICS}, ConfigPlace())
    settings = [setting for scope in SCOPES for setting in found.settings(tables, scope, scope)]
    listed = found.tables(tables.get(TOPICS, []), TOPICS)
    sections = [one for index, topic in enumerate(listed) for one in found.sections(topic, f"{TOPICS}.{index}")]
    found.check(where)
    return ConfigLayer(where, tuple(settings), tuple(sections))


@attrs.define
class _ClientToml(ConfigFindings):
    """The settings of tables, and the problems of all of them."""

    path: str = attrs.field(kw_only=True)

    def settings(self, tables: Mapping[str, Any], scope: str, where: str) -> Iterator[Setting]:
        for name, value in self.table(tables.get(scope, {}), where).items():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, bool | int | str):
                    yield Setting(scope, name.lower(), plain(one), 0, self.path)
                else:
                    self.problem(ConfigPlace(0, f"{where}.{name}"), "write a text, a number, true, false or a list")

    def sections(self, table: Any, where: str) -> Iterator[TopicSection]:
        table = self.table(table, where)
        place = ConfigPlace(0, where)
        self.keys(table, {"name", "pattern", *OF_TOPICS}, place)
        name, pattern = str(table.get("name", "")), str(table.get("pattern", ""))
        if bool(name) == bool(pattern):
            self.problem(place, "this section needs name or pattern, and not both")
            return
        found = self.attempt(place, "", lambda: expression(pattern, PatternType.PCRE) if pattern else "")
        for scope in OF_TOPICS:
            if scope in table:
                yield TopicSection(scope, tuple(self.settings(table, scope, f"{where}.{scope}")), name, found)
