"""The process of a daemon: its pidfile, its user, its terminal (P-704, P-803, P-804), and its file descriptors."""

import os
from contextlib import suppress
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.text import refusal

MAX_PID_BYTES = 32
"""Bytes read from a pidfile at most."""

RESERVED_DESCRIPTORS = 128
"""Descriptors for journals, connections of clients and monitors. The stream of a new source gets none of these."""


class ProcessError(StablecastError):
    """The process cannot do what the configuration asks for. The text names the option to change."""


@attrs.define
class Pidfile:
    """A file with the number of this process.

    A lock on it means that the daemon runs. The number proves nothing: after a power cut, and in containers, another
    program may have it.
    """

    path: Path
    descriptor: int

    @classmethod
    def write(cls, path: Path) -> "Pidfile":
        """Lock and write the file.

        Raises:
            ProcessError: A daemon that runs has locked it.
            OSError: It cannot be written.
        """
        while True:
            descriptor = machine.files.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            try:
                machine.files.lock(descriptor)
                if _leads_to(path, descriptor):
                    machine.files.truncate(descriptor, 0)
                    machine.files.pwrite(descriptor, f"{machine.process.pid()}\n".encode(), 0)
                    return cls(path, descriptor)
                machine.files.close(descriptor)  # The daemon that had it ended meanwhile, and removed it.
            except OSError as error:
                number = machine.files.pread(descriptor, MAX_PID_BYTES, 0).decode("ascii", "replace").strip()
                machine.files.close(descriptor)
                if not isinstance(error, BlockingIOError):
                    raise
                raise ProcessError(
                    f"the daemon of process {number or 'of unknown number'} runs and has the pidfile {path}; "
                    "stop it, or use another pidfile"
                ) from error

    def remove(self) -> None:
        """Remove the file if it is still ours and may be removed, and unlock it."""
        if self.descriptor < 0:
            return
        with suppress(OSError):  # Another user may own the directory. Without its lock the file stops nobody.
            if _leads_to(self.path, self.descriptor):
                machine.files.remove(self.path)
        machine.files.close(self.descriptor)
        self.descriptor = -1


def _leads_to(path: Path, descriptor: int) -> bool:
    """Return whether a path names the file that is open."""
    try:
        named, held = machine.files.stat(path), machine.files.status(descriptor)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


def become(uid: int | None, gid: int | None, files: list[Path]) -> None:
    """Become another user or group if the process was started as root, and give them the `files`.

    Raises:
        ProcessError: The system refuses, or that user cannot read the installed programs. Much of them is loaded later.
    """
    if not machine.process.is_root() or (uid is None and gid is None):
        return
    try:
        machine.process.change_user(uid, gid, files)
    except OSError as error:
        raise ProcessError(
            f"cannot become user {uid} and group {gid}: {refusal(error)}; correct uid and gid"
        ) from error
    for place in (Path(os.__file__), Path(__file__)):
        if not machine.files.is_readable(place):
            raise ProcessError(
                f"user {uid} cannot read {place.parent}, which runs here: install it where that user can, or "
                "correct uid and gid"
            )


def descriptors_for_streams() -> int:
    """Return the number of free descriptors beyond the reserved ones, 0 if none."""
    return max(0, machine.process.free_descriptors() - RESERVED_DESCRIPTORS)
