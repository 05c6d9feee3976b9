"""Decide whether an endpoint is traced. Most endpoints are not, and then the recorder is not loaded."""

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.errors import TraceError
from stablecast.runtime import machine

if TYPE_CHECKING:
    from stablecast.evidence.trace.converter import Endpoint
    from stablecast.evidence.trace.trace_recorder import Recorder

VARIABLE: Final = "STABLECAST_TRACE"
"""The environment variable that names the directory for traces."""

SCARCE: Final = (errno.EMFILE, errno.ENFILE)
"""Errors for want of a descriptor. They pass, and another directory does not help."""


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
            For want of a descriptor every endpoint does without.

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
        cause = error.__cause__
        if not optional and not (isinstance(cause, OSError) and cause.errno in SCARCE):
            raise
        complain(str(error))
        return None
