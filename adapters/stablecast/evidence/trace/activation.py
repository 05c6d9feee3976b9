"""Decide whether an endpoint is traced. Most endpoints are not, and then the recorder is not loaded."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.errors import TraceError
from stablecast.runtime import machine
from stablecast.text.scarcity import is_scarce

if TYPE_CHECKING:
    from stablecast.evidence.trace.converter import Endpoint
    from stablecast.evidence.trace.trace_recorder import Recorder

VARIABLE: Final = "STABLECAST_TRACE"
"""The environment variable that names the directory for traces."""


def recorder(
    role: Role, name: str, endpoint: "Endpoint", directory: Path | None = None, *, optional: bool = False
) -> "Recorder | None":
    """Return a recorder in `directory`, else in that of STABLECAST_TRACE, else None.

    Args:
        role: The role of the machine.
        name: The name of the endpoint for people.
        endpoint: A machine with an empty outbox.
        directory: The directory of traces.
        optional: Whether the endpoint does without a trace that cannot be written. Standard error gets the cause then.
            For want of descriptors, memory or threads every endpoint does without.

    Raises:
        TraceError: If the file cannot be made, and the trace is not optional.
    """
    named = directory or machine.process.environment.get(VARIABLE)
    if not named:
        return None
    from stablecast.evidence.trace.trace_recorder import Recorder, complain, rolling  # noqa: PLC0415  # see above

    try:
        return Recorder(Path(named), role, name, endpoint, rolling=rolling())
    except TraceError as error:
        if not (optional or is_scarce(error.__cause__)):  # Scarcity passes, and another directory does not help.
            raise
        complain(str(error))
        return None
