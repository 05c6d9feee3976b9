"""What `send` and `receive` are both told: how to be found, as whom, and with which options."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.cli.common import parse_options
from stablecast.client import Context
from stablecast.config.options import Value


@attrs.frozen
class Joining:
    """The arguments of a context, and the options of what is made in it."""

    resolvers: Sequence[str]
    services: Sequence[str]
    session_id: int
    option: Sequence[str]
    profile: str
    trace: Path | None

    def context(self) -> Context:
        """The context. Raises AddressError, OptionError."""
        return Context(
            resolver=self.resolvers,
            resolver_service=self.services,
            session_id=self.session_id,
            profile=self.profile,
            trace=self.trace,
        )

    def options(self) -> dict[str, Value]:
        """The options. Raises OptionError."""
        return parse_options(self.option)
