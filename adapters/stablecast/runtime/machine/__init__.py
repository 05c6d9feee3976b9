"""The seam to the operating system: everything that the shipped programs take from it.

Callers name the part that they use, so that a reader sees each contact with the system:

    from stablecast.runtime import machine

    now = machine.clock.monotonic_ns()

`tests/test_machine_seam.py` forbids clocks, entropy, files, sockets, threads and signals elsewhere in the programs. A
simulated world replaces functions of the standard library (`stablecast.lab.world.user_code`), and few of these parts.
"""

from pathlib import Path

from stablecast.runtime.machine import clock, entropy, files, network, process, threads
from stablecast.runtime.machine.datagram_memory import DatagramMemory, DatagramReader, Socket
from stablecast.runtime.machine.files import Mapped, Octets, Place
from stablecast.runtime.machine.process import DetachedProcess
from stablecast.runtime.machine.threads import ReplacedThreadsError, Thread

__all__ = [
    "DatagramMemory",
    "DatagramReader",
    "DetachedProcess",
    "Mapped",
    "Octets",
    "Place",
    "ReplacedThreadsError",
    "Socket",
    "Thread",
    "clock",
    "entropy",
    "files",
    "installed_at_ns",
    "installed_file",
    "network",
    "process",
    "read_text",
    "text_of",
    "threads",
]


def read_text(path: Path) -> str:
    """Return the UTF-8 text of a file, with the newlines of Unix. Raises OSError and UnicodeDecodeError."""
    return text_of(files.read_bytes(path))


def text_of(octets: bytes) -> str:
    """Return the UTF-8 text of the bytes of a file, with the newlines of Unix. Raises UnicodeDecodeError."""
    return octets.decode().replace("\r\n", "\n").replace("\r", "\n")


def installed_file(path: Path) -> bytes:
    """Return the contents of a file that was installed with the programs. It is the same on every machine.

    The programs may lie in a zip archive, as Spark sends them to its workers.
    """
    try:
        return path.read_bytes()
    except NotADirectoryError:
        from zipfile import ZipFile  # noqa: PLC0415 - few programs lie in an archive

        archive = next(parent for parent in path.parents if parent.is_file())
        with ZipFile(archive) as packed:
            return packed.read(path.relative_to(archive).as_posix())


def installed_at_ns(path: Path) -> int:
    """Return when such a file was installed, in ns since the epoch."""
    return path.stat().st_mtime_ns
