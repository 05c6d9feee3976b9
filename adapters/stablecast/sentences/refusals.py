"""What the system said no to, without its numbers, and what a person can do about it."""

import errno
from pathlib import Path
from typing import Final

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
