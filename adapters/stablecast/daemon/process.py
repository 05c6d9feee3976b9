"""What a daemon does to its own process: one pidfile, another user, no terminal (P-704, P-803, P-804); descriptors."""

import os
import resource
import sys
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError

MAX_PID_BYTES = 32
"""Bound on what is read from a pidfile, in bytes."""

RESERVED_DESCRIPTORS = 128
"""Kept for journals, clients' connections and those who look on: the stream of a new source gets none of these."""


class ProcessError(StablecastError):
    """The process cannot be what the configuration asks for; the message says what to change."""


@attrs.frozen
class Pidfile:
    """A file with the number of this process. Made by `write`, and removed by `remove`."""

    path: Path

    @classmethod
    def write(cls, path: Path) -> "Pidfile":
        """Write it.

        Raises:
            ProcessError: A daemon that runs has written it.
            OSError: It cannot be written.
        """
        holder = _holder(path)
        if holder is not None and holder != os.getpid():
            raise ProcessError(f"process {holder}, which runs, has the pidfile {path}; stop it, or use another pidfile")
        path.write_text(f"{os.getpid()}\n", encoding="ascii")
        return cls(path)

    def remove(self) -> None:
        """Remove it, if it is still ours; what cannot be removed stays."""
        if _number(self.path) == os.getpid():
            try:
                self.path.unlink()
            except OSError:
                return  # Another user owns the directory: the number in it is that of nobody.


def _number(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            return int(file.read(MAX_PID_BYTES))
    except (OSError, ValueError):
        return None


def _holder(path: Path) -> int | None:
    """The process that wrote a pidfile and runs."""
    number = _number(path)
    if number is None or number <= 0:
        return None
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return number
    return number


def become(uid: int | None, gid: int | None, files: list[Path]) -> None:
    """Be another user or group from now on, if the process was started as root; `files` become theirs.

    Raises:
        ProcessError: The system refuses.
    """
    if os.geteuid() != 0 or (uid is None and gid is None):
        return
    try:
        for path in files:
            os.chown(path, -1 if uid is None else uid, -1 if gid is None else gid)
        if gid is not None:
            os.setgroups([gid])
            os.setgid(gid)
        if uid is not None:
            os.setuid(uid)
    except OSError as error:
        raise ProcessError(
            f"cannot become user {uid} and group {gid}: {error.strerror}; correct uid and gid"
        ) from error


def detach() -> bool:
    """Go on in a process without a terminal; returns False in the one that was started, which should end now.

    What the daemon still has to say goes to its log: standard input, output and error lead nowhere from here on.
    """
    if os.fork():
        return False
    os.setsid()
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return True


def allow_descriptors() -> None:
    """Use as many descriptors as the host allows: each source over TCP takes one, and many shells begin with 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def descriptors_for_streams() -> int:
    """How many more there are, beyond those that are reserved; 0: none.

    The system gives out the lowest free number, so those below it are taken.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return 0
    os.close(lowest)
    return max(0, allowed - RESERVED_DESCRIPTORS - lowest)
