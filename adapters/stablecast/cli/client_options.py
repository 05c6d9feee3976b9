"""Build contexts for `send` and `receive` from the options that both commands have."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.client import Context
from stablecast.config import client_files
from stablecast.config.client_configuration import ClientConfiguration, of_context
from stablecast.config.findings import ConfigPlace, ConfigProblem
from stablecast.config.option_files import Setting
from stablecast.config.options import Value, parse_options
from stablecast.config.resolution_options import configured, strategy, with_old_relay
from stablecast.config.setting_checks import option_notices
from stablecast.runtime.interfaces import choose
from stablecast.text.console import note


@attrs.frozen
class Participant:
    """Hold the arguments of a context and the options of its only source or receiver.

    Attributes:
        option: Documented options, of the context's resolution and of the source or receiver.
        multicast: Interface of multicast; empty: no multicast unless an option asks for it.
        files: Configuration files, below the options.
        application, context_name: Of XML files.
    """

    resolvers: Sequence[str]
    services: Sequence[str]
    strategy: str
    multicast: str
    interface: str
    session_id: int
    option: Sequence[str]
    profile: str
    trace: Path | None
    files: Sequence[Path] = ()
    application: str = ""
    context_name: str = ""

    def context(self) -> Context:
        """Return a new context, and print the notices about its files.

        Raises AddressError, ConfigError, ConfigFileError, InterfaceError, OptionError, OSError.
        """
        configuration = self.configuration()
        for notice in configuration.notices:
            note(notice.told(""))
        return Context(
            resolver=self.resolvers,
            resolver_service=self.services,
            resolution=strategy(self.strategy),
            interface=self.interface and choose(self.interface),
            session_id=self.session_id,
            profile=self.profile,
            trace=self.trace,
            configuration=configuration,
        )

    def configuration(self) -> ClientConfiguration:
        """Return the files of the command and of the environment, with the context's options of the command above them.

        Raises ConfigFileError, OptionError, OSError.
        """
        found = client_files.load(self.files, self.application, self.context_name)
        given: dict[str, Value] = {"resolver_multicast_interface": self.multicast} if self.multicast else {}
        given |= {name: value for name, value in parse_options(self.option).items() if of_context(name)}
        asked = (Setting("context", name, str(value), 0) for name, value in given.items())
        texts = (text for setting in asked for text in option_notices(setting))
        notices = (ConfigProblem(ConfigPlace(0, "option"), text) for text in texts)
        return attrs.evolve(found.above("context", given), notices=(*found.notices, *notices))

    def options(self) -> dict[str, Value]:
        """Return the options of the source or receiver. Raises OptionError."""
        return {name: value for name, value in parse_options(self.option).items() if not of_context(name)}

    def resolves(self) -> bool:
        """Return whether the context can find sources. Raises like `configuration`."""
        found = configured(strategy(self.strategy), self.configuration().of_context()[0])
        relays = self.resolvers or with_old_relay(found).relays
        return bool(self.services or found.services or (found.udp and (relays or found.multicast)))
