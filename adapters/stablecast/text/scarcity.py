"""Failures for lack of what a process shares among all that it does: descriptors, memory and threads."""

import errno

REMEDY = "the disk is not the cause: raise the limits of the process (descriptors, memory, threads)"
"""What helps where a file cannot be used for that reason."""

SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN})
"""Errors of a process or system without descriptors, memory or processes."""


def is_scarce(error: BaseException | None) -> bool:
    """Return whether a process failed for lack of descriptors, memory or threads, which says nothing about a disk."""
    if isinstance(error, OSError):
        return error.errno in SCARCE
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "thread" in str(error))
