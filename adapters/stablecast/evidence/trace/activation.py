"""Decide whether an endpoint is traced. Most endpoints are not, and then the recorder is not loaded."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from stablecast.core.protocol.messages import Role
from stablecast.runtime import machine

if TYPE_CHECKING:
    from stablecast.evidence.trace.converter import Endpoint
    from stablecast.evidence.trace.trace_recorder import Recorder

VARIABLE: Final = "STABLECAST_TRACE"
"""The environment variable that names the directory for traces."""


def recorder(role: Role, name: str, endpoint: "Endpoint", directory: Path | None = None) -> "Recorder | None":
    """Return a recorder in `directory`, else in that of STABLECAST_TRACE, else None.

    Raises:
        TraceError: If the file cannot be made.
    """
    named = directory or machine.process.environment.get(VARIABLE)
    if not named:
        return None
    from stablecast.evidence.trace.trace_recorder import Recorder, rolling  # noqa: PLC0415  # see above

    return Recorder(Path(named), role, name, endpoint, rolling=rolling())
