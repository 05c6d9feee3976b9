"""Start the command line and report a missing extra in one sentence."""

import sys

from stablecast.runtime import garbage_collection
from stablecast.text.exit_status import guarded

MISSING = "a package that stablecast needs is missing: pip install stablecast"
MISSING_TESTING = "whole worlds need stablecast's testing extra: pip install 'stablecast[testing]'"


def main() -> None:
    """Run the command line and exit with its status."""
    if sys.argv[1:] == ["--version"]:
        from stablecast.text.release import release  # noqa: PLC0415

        print(release())
        sys.exit()
    garbage_collection.defer_at_start()
    try:
        from stablecast.cli.app import run  # noqa: PLC0415  # reported below if the extra is missing

        sys.exit(guarded(run))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("stablecast"):
            raise
        sys.exit(f"{MISSING_TESTING if error.name == 'greenlet' else MISSING} ({error.name} is missing)")


if __name__ == "__main__":
    main()
