"""The process of a daemon: its pidfile, its user, its terminal (P-704, P-803, P-804), and its file descriptors."""

import os
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
        if holder is not None and holder != machine.process.pid():
            raise ProcessError(f"process {holder}, which runs, has the pidfile {path}; stop it, or use another pidfile")
        machine.files.write_bytes(path, f"{machine.process.pid()}\n".encode())
        return cls(path)

    def remove(self) -> None:
        """Remove the file if it is still ours and may be removed."""
        if _number(self.path) == machine.process.pid():
            try:
                machine.files.remove(self.path)
            except OSError:
                return  # Another user owns the directory. The number in the file will belong to no process.


def _number(path: Path) -> int | None:
    try:
        with machine.files.file(path, "rb") as file:
            return int(file.read(MAX_PID_BYTES))
    except (OSError, ValueError):
        return None


def _holder(path: Path) -> int | None:
    """Return the process that wrote a pidfile, if it runs."""
    number = _number(path)
    if number is None or number <= 0:
        return None
    return number if machine.process.is_alive(number) else None


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
