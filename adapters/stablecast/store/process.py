"""The process of a daemon: its pidfile, its user, its terminal (P-704, P-803, P-804), and its file descriptors."""

import os
import resource
import signal
import sys
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError
from stablecast.text import refusal

MAX_PID_BYTES = 32
"""Bytes read from a pidfile at most."""

RESERVED_DESCRIPTORS = 128
"""Descriptors for journals, connections of clients and monitors. The stream of a new source gets none of these."""


class ProcessError(StablecastError):
    """The process cannot do what the configuration asks for. The text names the option to change."""


@attrs.frozen
class Pidfile:
    """A file with the number of this process."""

    path: Path

    @classmethod
    def write(cls, path: Path) -> "Pidfile":
        """Write the file.

        Raises:
            ProcessError: Another daemon that runs has written it.
            OSError: It cannot be written.
        """
        holder = _holder(path)
        if holder is not None and holder != os.getpid():
            raise ProcessError(f"process {holder}, which runs, has the pidfile {path}; stop it, or use another pidfile")
        path.write_text(f"{os.getpid()}\n", encoding="ascii")
        return cls(path)

    def remove(self) -> None:
        """Remove the file if it is still ours and may be removed."""
        if _number(self.path) == os.getpid():
            try:
                self.path.unlink()
            except OSError:
                return  # Another user owns the directory. The number in the file will belong to no process.


def _number(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            return int(file.read(MAX_PID_BYTES))
    except (OSError, ValueError):
        return None


def _holder(path: Path) -> int | None:
    """Return the process that wrote a pidfile, if it runs."""
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
    """Become another user or group if the process was started as root, and give them the `files`.

    Raises:
        ProcessError: The system refuses, or that user cannot read the installed programs. Much of them is loaded later.
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
            f"cannot become user {uid} and group {gid}: {refusal(error)}; correct uid and gid"
        ) from error
    for place in (Path(os.__file__), Path(__file__)):
        if not os.access(place, os.R_OK):
            raise ProcessError(
                f"user {os.getuid()} cannot read {place.parent}, which runs here: install it where that user can, or "
                "correct uid and gid"
            )


@attrs.frozen
class Detached:
    """The daemon's side of a detachment. The process that was started waits for `ready`."""

    pipe: int

    def ready(self) -> None:
        """End the process that was started, and go on without its terminal. From now on use the log."""
        sys.stdout.flush()
        sys.stderr.flush()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
        os.write(self.pipe, b"1")
        os.close(self.pipe)


def detach() -> Detached | int:
    """Continue in a process with a session of its own.

    Returns:
        In the daemon, the object to call when it is ready. In the process that was started, its exit status: 0 if the
        daemon is ready, else the daemon's status. The daemon has written the error to standard error.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        if os.read(reading, 1):
            return 0
        return abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) or 1
    os.close(reading)
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # No terminal is left that could hang up.
    return Detached(writing)


def allow_descriptors() -> None:
    """Raise the limit on descriptors to the hard limit. Each source over TCP needs one, and many shells allow 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def descriptors_for_streams() -> int:
    """Return the number of free descriptors beyond the reserved ones, 0 if none.

    The system gives out the lowest free number, so all below it are in use.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return 0
    os.close(lowest)
    return max(0, allowed - RESERVED_DESCRIPTORS - lowest)
