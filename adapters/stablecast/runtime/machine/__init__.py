"""The one seam to the machine: everything that the shipped programs take from the operating system.

Callers import this package, not its objects, so that `install` takes effect everywhere:

    from stablecast.runtime import machine

    now = machine.clock.monotonic_ns()

`tests/test_machine_seam.py` forbids clocks, entropy, files, sockets, threads and signals elsewhere in the programs.
"""

from pathlib import Path
from typing import TypedDict, Unpack

from stablecast.runtime.machine import system_clock
from stablecast.runtime.machine.protocols import (
    Clock,
    DatagramMemory,
    DatagramReader,
    Descriptors,
    Detachment,
    Entropy,
    Executor,
    Files,
    Lock,
    Mapped,
    Network,
    Octets,
    Place,
    Process,
    Queue,
    Semaphore,
    Socket,
    Thread,
    Threads,
)
from stablecast.runtime.machine.system_entropy import SystemEntropy
from stablecast.runtime.machine.system_files import SystemFiles
from stablecast.runtime.machine.system_network import SystemNetwork
from stablecast.runtime.machine.system_process import SystemProcess
from stablecast.runtime.machine.system_threads import ReplacedThreadsError, SystemThreads

__all__ = [
    "Clock",
    "DatagramMemory",
    "DatagramReader",
    "Descriptors",
    "Detachment",
    "Entropy",
    "Executor",
    "Files",
    "Lock",
    "Mapped",
    "Network",
    "Objects",
    "Octets",
    "Place",
    "Process",
    "Queue",
    "ReplacedThreadsError",
    "Semaphore",
    "Socket",
    "Thread",
    "Threads",
    "clock",
    "entropy",
    "files",
    "install",
    "installed_at_ns",
    "installed_file",
    "network",
    "process",
    "read_text",
    "text_of",
    "threads",
]

clock: Clock = system_clock
entropy: Entropy = SystemEntropy()
files: Files = SystemFiles()
network: Network = SystemNetwork()
threads: Threads = SystemThreads()
process: Process = SystemProcess()


class Objects(TypedDict, total=False):
    """The objects of this package, by name."""

    clock: Clock
    entropy: Entropy
    files: Files
    network: Network
    threads: Threads
    process: Process


def install(**objects: Unpack[Objects]) -> Objects:
    """Replace the named objects and return the previous ones, which a second call installs again.

    Only a simulated world does this. Objects that were made by the previous ones (sockets, threads) stay as they are.
    """
    global clock, entropy, files, network, threads, process  # noqa: PLW0603 - the seam is one place by intention
    previous = Objects(clock=clock, entropy=entropy, files=files, network=network, threads=threads, process=process)
    clock = objects.get("clock", clock)
    entropy = objects.get("entropy", entropy)
    files = objects.get("files", files)
    network = objects.get("network", network)
    threads = objects.get("threads", threads)
    process = objects.get("process", process)
    return previous


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
