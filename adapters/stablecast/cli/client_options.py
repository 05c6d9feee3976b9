"""What `send` and `receive` are both told: how to be found, as whom, and with which options."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.client import Context, resolution
from stablecast.config.options import Value, parse_options
from stablecast.config.resolution_options import ResolutionSettings, of_contexts
from stablecast.runtime.interfaces import choose


@attrs.frozen
class Joining:
    """The arguments of a context, and the options of what is made in it.

    Attributes:
        option: Documented options; those of resolution are the context's, which has one source or receiver only.
        multicast: The interface of multicast, empty: none is used unless an option says so.
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

    def context(self) -> Context:
        """The context. Raises AddressError, InterfaceError, OptionError."""
        return Context(
            resolver=self.resolvers,
            resolver_service=self.services,
            resolution=self.resolution(),
            interface=choose(self.interface),
            session_id=self.session_id,
            profile=self.profile,
            trace=self.trace,
        )

    def options(self) -> dict[str, Value]:
        """The options of a source or receiver. Raises OptionError."""
        return of_contexts(parse_options(self.option))[1]

    def resolution(self) -> ResolutionSettings:
        """How the context resolves, relays and services aside. Raises AddressError, OptionError."""
        given = {"resolver_multicast_interface": self.multicast} if self.multicast else {}
        return resolution(self.strategy, {**given, **of_contexts(parse_options(self.option))[0]})

    def finds(self) -> bool:
        """Whether sources are found at all. Raises AddressError, OptionError."""
        found = self.resolution()
        return bool(
            self.services or found.services or (found.udp and (self.resolvers or found.relays or found.multicast))
        )
