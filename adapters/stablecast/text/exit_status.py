"""Exit statuses of commands, and one sentence for every failure that a user can mend."""

import sys
from collections.abc import Callable

from stablecast.core.errors import StablecastError
from stablecast.text.remedies import sentence

FAILED = 1
"""Exit status after a sentence that says what is wrong."""

INTERRUPTED = 130
"""Exit status after an interrupt that is not the way to end a command: 128 and the signal's number, as shells say."""


def guarded(body: Callable[[], int]) -> int:
    """Run a command; what users can mend becomes one sentence on standard error."""
    try:
        return body()
    except StablecastError as error:
        print(f"stablecast: {error}", file=sys.stderr)
    except OSError as error:
        print(f"stablecast: {sentence(error)}", file=sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED
