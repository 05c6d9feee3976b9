"""Build contexts for `send` and `receive` from the options that both commands have."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.client import Context, resolution
from stablecast.config.options import Value, parse_options
from stablecast.config.resolution_options import ResolutionSettings, of_contexts
from stablecast.runtime.interfaces import choose


@attrs.frozen
class Participant:
    """Hold the arguments of a context and the options of its only source or receiver.

    Attributes:
        option: Documented options, of the context's resolution and of the source or receiver.
        multicast: Interface of multicast; empty: no multicast unless an option asks for it.
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
        """Return a new context. Raises AddressError, InterfaceError, OptionError."""
        return Context(
            resolver=self.resolvers,
            resolver_service=self.services,
            resolution=self.resolution(),
            interface=self.interface and choose(self.interface),
            session_id=self.session_id,
            profile=self.profile,
            trace=self.trace,
        )

    def options(self) -> dict[str, Value]:
        """Return the options of the source or receiver. Raises OptionError."""
        return of_contexts(parse_options(self.option))[1]

    def resolution(self) -> ResolutionSettings:
        """Return how the context resolves topics, without relays and services. Raises AddressError, OptionError."""
        given = {"resolver_multicast_interface": self.multicast} if self.multicast else {}
        return resolution(self.strategy, {**given, **of_contexts(parse_options(self.option))[0]})

    def resolves(self) -> bool:
        """Return whether the context can find sources. Raises AddressError, OptionError."""
        found = self.resolution()
        return bool(
            self.services or found.services or (found.udp and (self.resolvers or found.relays or found.multicast))
        )
