"""Entry point: one sentence for every failure a user can mend, exit status 0 for success only."""

import gc
import sys
from collections.abc import Callable

from stablecast.core.errors import StablecastError

YOUNG = 50_000
"""New objects until garbage is looked for: what is loaded at a start is none, and looking for some takes a tenth of it.

Daemons do as usual once they run (`stablecast.cli.common`).
"""

MISSING = "stablecast's command line needs its daemons extra: pip install 'stablecast[daemons]'"
FAILED = 1
INTERRUPTED = 130
"""Exit status after an interrupt that is not the way to end a command: 128 and the signal's number, as shells say."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    try:
        from stablecast.cli.app import run  # noqa: PLC0415  # a missing extra becomes one sentence
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("stablecast"):
            raise
        sys.exit(f"{MISSING} ({error.name} is missing)")
    sys.exit(guarded(run))


def guarded(body: Callable[[], int]) -> int:
    """Run a command; what users can mend becomes one sentence on standard error."""
    try:
        return body()
    except StablecastError as error:
        print(f"stablecast: {error}", file=sys.stderr)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"stablecast: {error.strerror or error}{where}", file=sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED


if __name__ == "__main__":
    main()
