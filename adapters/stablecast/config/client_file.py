"""The option file of a client, read as a whole: each line has an effect, a notice or an error.

Options of the scope context that are also options of sources or receivers hold for both, unless a line of the narrower
scope overrides them.
"""

from pathlib import Path

import attrs

from stablecast.config.checks import ClientOptions
from stablecast.config.findings import ConfigPlace, ConfigProblem
from stablecast.config.library_options import documented
from stablecast.config.option_files import Setting, read
from stablecast.config.options import ALIASES, GROUPS, SCOPES, OptionError, apply, notices, suggestion
from stablecast.config.profiles import profile
from stablecast.config.resolution_options import ResolutionSettings, configured, of_contexts, own
from stablecast.config.transport_options import TransportConfig, split
from stablecast.config.transport_options import notices as transport_notices
from stablecast.config.wildcard_options import WILDCARD_OPTIONS, wildcard_notices, wildcard_options
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig

CONTEXT = "context"


@attrs.define
class ClientFile:
    """The configurations that the lines of one file make, and the notices about lines without effect."""

    source: SourceConfig
    receiver: ReceiverConfig
    transport: TransportConfig
    resolution: ResolutionSettings = ResolutionSettings()
    notices: list[ConfigProblem] = attrs.field(factory=list)

    def add(self, setting: Setting) -> None:
        """Set the option of one line. Raises StablecastError without the place of the line."""
        given = {setting.name: setting.value}
        self.transport, others = split(given, self.transport)
        self._notice(setting, *transport_notices(given))
        if not others:
            return
        if setting.scope == CONTEXT:
            self._add_to_context(setting)
        elif setting.scope == "source":
            others = own(self.resolution.config.advertise, others)[1]
            self.source = apply("source", self.source, others)
            self._notice(setting, *notices("source", others))
        elif setting.scope == "receiver":
            others = own(self.resolution.config.query, others)[1]
            self.receiver = apply("receiver", self.receiver, others)
            self._notice(setting, *notices("receiver", others))
        elif setting.scope == "wildcard_receiver" and setting.name in WILDCARD_OPTIONS:
            wildcard_options(self.resolution.config.patterns, others)
            self._notice(setting, *wildcard_notices(others))
        else:
            self._without_effect(setting)

    def _add_to_context(self, setting: Setting) -> None:
        given = {setting.name: setting.value}
        if of_contexts(given)[0]:
            self.resolution = configured(self.resolution, given)
            return
        if (CONTEXT, setting.name) not in documented() or not _of_endpoints(setting.name):
            self._without_effect(setting)
            return
        if _is_option("source", setting.name):
            self.source = apply("source", self.source, given)
        if _is_option("receiver", setting.name):
            self.receiver = apply("receiver", self.receiver, given)

    def _without_effect(self, setting: Setting) -> None:
        """Note an option without effect here. Raises OptionError for a name that its scope does not have."""
        known = [name for scope, name in documented() if scope == setting.scope]
        if known and setting.name not in known:  # No options are known for scopes that have no effect at all.
            raise OptionError(f"there is no {setting.scope} option '{setting.name}': {suggestion(setting.name, known)}")
        self._notice(setting, f"{setting.name} has no effect in a client")

    def _notice(self, setting: Setting, *texts: str) -> None:
        self.notices += [ConfigProblem(ConfigPlace(setting.line, setting.name), text) for text in texts]


def load(path: Path, profile_name: str) -> ClientOptions:
    """Return the client that an option file describes.

    Raises:
        StablecastError: A line is wrong; the message names the file, the line and the nearest known option.
        OSError: The file cannot be read.
    """
    defaults = profile(profile_name)
    found = ClientFile(attrs.evolve(defaults.source, topic="topic"), defaults.receiver, defaults.transport)
    for setting in sorted(read(path), key=_rank):
        try:
            found.add(setting)
        except StablecastError as error:
            raise StablecastError(f"{path}:{ConfigPlace(setting.line, setting.name)}: {error}") from error
    return ClientOptions(str(path), found.source, found.receiver, found.transport, tuple(found.notices))


def _rank(setting: Setting) -> tuple[bool, bool]:
    """Return the place of a line: the context first, which others override, and sizes of groups after all stores."""
    # A size before its stores could equal the length of their list so far, and would then grow with it.
    return setting.scope != CONTEXT, setting.name == GROUPS


def _of_endpoints(name: str) -> bool:
    return _is_option("source", name) or _is_option("receiver", name)


def _is_option(scope: str, name: str) -> bool:
    known = ALIASES[scope].get(name, name)
    return any(option.name == known for option in SCOPES[scope])
