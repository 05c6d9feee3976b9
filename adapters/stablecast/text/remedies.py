"""What the system said no to, without its numbers, and what a person can do about it."""

import errno
import os
from pathlib import Path
from typing import Final

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

_UNREAD: Final = {
    errno.ENOENT: "correct the path",
    errno.ENOTDIR: "correct the path",
    errno.EACCES: "give this user access to it",
    errno.EPERM: "give this user access to it",
    errno.EISDIR: "name a file",
}


def refusal(error: BaseException) -> str:
    """Why something failed, in words.

    >>> refusal(OSError(errno.ENOSPC, "No space left on device", "a.sct")), refusal(ValueError("it is odd"))
    ('No space left on device', 'it is odd')
    """
    told = error.strerror if isinstance(error, OSError) else None
    return told or str(error) or type(error).__name__


def unread(path: Path, error: OSError) -> str:
    """The sentence about a file or directory that cannot be read.

    >>> unread(Path("a.sct"), FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'a.sct cannot be read: No such file or directory; correct the path'
    """
    return f"{path} cannot be read: {refusal(error)}; {_UNREAD.get(error.errno or 0, 'check the disk')}"


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
