"""Entry point: one sentence for every failure a user can mend, exit status 0 for success only."""

import errno
import gc
import os
import sys
from collections.abc import Callable

from stablecast.core.errors import StablecastError

YOUNG = 50_000
"""New objects until garbage is looked for: what is loaded at a start is none, and looking for some takes a tenth of it.

Daemons do as usual once they run (`stablecast.cli.common`).
"""

MISSING = "stablecast's command line needs its daemons extra: pip install 'stablecast[daemons]'"
FAILED = 1
"""Exit status after a sentence that says what is wrong."""

REMEDIES = {
    errno.ENOENT: "there is no {}: correct the path, or create it",
    errno.EEXIST: "{} is there already: choose another name",
    errno.EISDIR: "{} is a directory: name a file",
    errno.ENOTDIR: "{} leads through what is no directory: correct the path",
    errno.EACCES: "{} is not this user's to read or write: give access to it, or choose another place",
    errno.EPERM: "{} is not this user's to change: give access to it, or choose another place",
    errno.EROFS: "{} is on a disk that is read-only: choose another place",
    errno.ENOSPC: "no room is left for {}: make some, or choose another place",
    errno.EDQUOT: "no room is left for {}: make some, or choose another place",
}
"""What is wrong with a file, and what to do, by the number of the system's error."""

INTERRUPTED = 130
"""Exit status after an interrupt that is not the way to end a command: 128 and the signal's number, as shells say."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    try:
        from stablecast.cli.app import run  # noqa: PLC0415  # a missing extra becomes one sentence

        sys.exit(guarded(run))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("stablecast"):
            raise
        sys.exit(f"{MISSING} ({error.name} is missing)")


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


def sentence(error: OSError) -> str:
    """What the system refused: the file and the remedy, as far as it says.

    >>> sentence(FileNotFoundError(errno.ENOENT, "No such file or directory", "stores.xml"))
    'there is no stores.xml: correct the path, or create it'
    """
    if error.filename is None:
        return error.strerror or str(error)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    remedy = REMEDIES.get(error.errno or 0)
    return f"{error.strerror} ({name})" if remedy is None else remedy.format(name)


if __name__ == "__main__":
    main()
