"""Sentences for people: counts, and failures of the operating system with their remedy."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from stablecast.text import scarcity

REMEDIES: Final = {
    errno.ENOENT: "correct the path",
    errno.ENOTDIR: "correct the path",
    errno.EEXIST: "choose another name",
    errno.EISDIR: "name a file",
    errno.EACCES: "give this user access to it",
    errno.EPERM: "give this user access to it",
    errno.ELOOP: "name the file itself, not a symbolic link to it",
    errno.EROFS: "choose another place",
    errno.ENOSPC: "free some space, or choose another place",
    errno.EDQUOT: "free some space, or choose another place",
    **dict.fromkeys(scarcity.SCARCE, scarcity.REMEDY),
}
"""The remedy for each error number of a file operation; `check the disk` is the remedy for all others."""


def plural(number: int, name: str, of_one: str = "", of_many: str = "") -> str:
    """Return a count with its noun, and the matching verb if one follows.

    >>> plural(0, "file"), plural(1, "source"), plural(1000, "branch"), plural(1, "message", "was", "were")
    ('0 files', '1 source', '1,000 branches', '1 message was')
    """
    verb = of_one if number == 1 else of_many
    return f"{number:,} {name}{'' if number == 1 else 'es' if name.endswith('ch') else 's'}{verb and ' '}{verb}"


def refusal(error: BaseException) -> str:
    """Return the reason of a failure in words, without error number and file name.

    >>> refusal(OSError(errno.ENOSPC, "No space left on device", "a.sct")), refusal(ValueError("it is odd"))
    ('No space left on device', 'it is odd')
    >>> refusal(KeyError("setup"))
    "'setup' is missing"
    """
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror or os.strerror(error.errno)
    return str(error) or type(error).__name__


def unread(path: Path, error: OSError) -> str:
    """Return the sentence about a file or directory that cannot be read.

    >>> unread(Path("a.sct"), FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'a.sct cannot be read: No such file or directory; correct the path'
    """
    return f"{path} cannot be read: {_with_remedy(error)}"


def sentence(error: OSError) -> str:
    """Return the sentence about an operation that the system refused, with its file if the error names one.

    >>> sentence(FileNotFoundError(errno.ENOENT, "No such file or directory", "stores.xml"))
    'stores.xml cannot be used: No such file or directory; correct the path'
    """
    if error.filename is None:
        return refusal(error)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
    return f"{name} cannot be used: {_with_remedy(error)}"


def _with_remedy(error: OSError) -> str:
    return f"{refusal(error)}; {REMEDIES.get(error.errno or 0, 'check the disk')}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the question whether the known name nearest to `name` was meant; empty if none is near."""
    import difflib  # noqa: PLC0415 - most programs find no wrong name

    found = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{found[0]}'?" if found else ""
