"""Exit statuses of commands, and one sentence for every failure that a user can fix."""

from collections.abc import Callable

from stablecast.core.errors import StablecastError
from stablecast.text.sentences import sentence

FAILED = 1
"""Exit status of a command that failed and printed one sentence about the reason."""

INTERRUPTED = 130
"""Exit status of a command that an interrupt ended early: 128 and the signal's number, as shells report it."""


def failed(reason: object, status: int = FAILED) -> int:
    """Print one sentence about a failure on standard error, and return the exit status."""
    from stablecast.text.console import note  # noqa: PLC0415 - every command starts here, and few fail

    note(f"stablecast: {reason}")
    return status


def guarded(body: Callable[[], int]) -> int:
    """Run a command and return its exit status; print one sentence about a failure that the user can fix."""
    try:
        return body()
    except StablecastError as error:
        return failed(error)
    except OSError as error:
        return failed(sentence(error))
    except KeyboardInterrupt:
        return INTERRUPTED
