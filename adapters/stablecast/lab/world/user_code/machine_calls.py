"""What the shipped programs ask of the machine in ways that the replacements of the standard library do not see.

These are system calls by `ctypes` and `ioctl`, files of `/proc`, and limits of the process. All else of
`stablecast.runtime.machine` calls functions that are replaced for all programs.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from stablecast.lab.world.kernel import SimulatedThread
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code.replacement import Table, in_programs, refusal_in_programs
from stablecast.runtime.machine import datagram_reading, network, process, threads

_IFF_UP, _IFF_LOOPBACK, _IFF_MULTICAST = 0x1, 0x8, 0x1000


def table() -> Table:
    return [
        in_programs(process, "owns_interpreter", lambda _: False),
        in_programs(process, "started_ns", lambda _: 0),  # It is not known, so this is the epoch.
        in_programs(process, "resident_bytes", lambda _: 0),  # Nor is the memory of one process among many.
        in_programs(process, "raise_descriptor_limit", lambda _: None),  # The world sets the limit.
        in_programs(process, "free_descriptors", lambda process: process.free_descriptors),
        refusal_in_programs(process, "detach", "a detached daemon", "start it without --detach"),
        refusal_in_programs(process, "input_descriptor", "standard input", "give the program its lines as arguments"),
        in_programs(network, "devices", _devices),
        in_programs(network, "is_of_owner", lambda *_: True),  # Hosts have one user.
        in_programs(network, "reader_of_datagrams", lambda _, memory: datagram_reading.one_by_one(memory)),
        in_programs(threads, "start", _start),
        in_programs(threads, "local", _local),
        in_programs(threads, "ask_short_slices", lambda *_: False),  # A thread of a world runs until it blocks.
        in_programs(threads, "yields_help", lambda _: False),  # All threads run soon.
    ]


def _start(process: SimulatedProcess, name: str, target: Callable[..., object], /, *arguments: Any) -> SimulatedThread:
    """Start a thread whose exception ends no test in silence: the world notes it, and `threading` would print it."""
    return process.start_thread(partial(target, *arguments), name)


_SPARE: dict[Callable[[], Any], list[Any]] = {}
"""Objects of threads that have ended, by the function that made them: buffers of megabytes serve all worlds."""

_OBJECTS: Final = "objects"
"""Key in the memory of a process: the objects of its threads, by thread and by the function that made them."""


def _local(process: SimulatedProcess, factory: Callable[[], Any]) -> Any:
    made = process.memory.setdefault(_OBJECTS, {})
    key = process.kernel.running().number, factory
    if key not in made:
        spare = _SPARE.get(factory)
        made[key] = spare.pop() if spare else factory()
    return made[key]


def reclaim(process: SimulatedProcess) -> None:
    """Keep the objects of the threads of a process that has ended, for later threads."""
    for (_, factory), made in process.memory.pop(_OBJECTS, {}).items():
        _SPARE.setdefault(factory, []).append(made)


def _devices(process: SimulatedProcess) -> Iterator[tuple[str, str, int]]:
    """Yield the loopback device and the one of the network."""
    yield "lo", "127.0.0.1", _IFF_UP | _IFF_LOOPBACK
    yield "eth0", process.host.address, _IFF_UP | _IFF_MULTICAST
