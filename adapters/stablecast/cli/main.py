"""Entry point: one sentence for every failure a user can mend, exit status 0 for success only."""

import sys
from collections.abc import Callable

MISSING = "stablecast's command line needs its daemons extra: pip install 'stablecast[daemons]'"
FAILED = 1


def main() -> None:
    """Run the command line."""
    try:
        from stablecast.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("stablecast"):
            raise
        sys.exit(f"{MISSING} ({error.name} is missing)")
    sys.exit(guarded(run))


def guarded(body: Callable[[], int]) -> int:
    """Run a command; what users can mend becomes one sentence on standard error."""
    from stablecast.core.errors import StablecastError

    try:
        return body()
    except StablecastError as error:
        print(f"stablecast: {error}", file=sys.stderr)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"stablecast: {error.strerror or error}{where}", file=sys.stderr)
    except KeyboardInterrupt:
        print("stablecast: interrupted", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    main()
