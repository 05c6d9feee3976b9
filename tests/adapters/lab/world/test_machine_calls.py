"""What the shipped programs ask of the machine is answered by the world, also where Python's library has no part."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stablecast.runtime import machine
from tests.adapters.lab.world.scene import scene


def run(main: Callable[[], Any]) -> Any:
    with scene() as world:
        (process,) = world.run_programs(host=main)
        return process.status


def test_no_call_tells_a_program_of_the_real_machine() -> None:
    process = machine.process

    def main() -> list[object]:
        found: list[object] = [process.owns_interpreter(), process.is_root(), os.getgid(), process.started_ns()]
        found += [process.resident_bytes(), machine.threads.ask_short_slices(1_000_000), machine.threads.yields_help()]
        found += [[name for name, _, _ in machine.network.devices()], machine.network.route("10.0.0.9")]
        return [*found, machine.network.is_of_owner(("127.0.0.1", 1), ("127.0.0.1", 2))]

    assert run(main) == [False, False, 1_000, 0, 0, False, False, ["lo", "eth0"], "10.0.0.1", True]
    assert process.owns_interpreter()
    assert process.resident_bytes() > 0


def test_the_world_sets_the_limit_of_descriptors() -> None:
    def main() -> tuple[int, int]:
        free = machine.process.free_descriptors()
        machine.process.raise_descriptor_limit()
        with machine.network.stream():
            return free, machine.process.free_descriptors()

    assert run(main) == (1024, 1023)


@pytest.mark.parametrize("call", ["detach", "input_descriptor"])
def test_what_is_not_simulated_is_refused(call: str) -> None:
    def main() -> None:
        with pytest.raises(NotImplementedError):
            getattr(machine.process, call)()

    run(main)


def test_a_thread_that_fails_is_noted_by_the_world() -> None:
    """Else the journal of a store could end by a defect, and no judge would hear of it."""

    def fail() -> None:
        raise KeyError("defect")

    with scene() as world:
        with pytest.raises(KeyError):
            world.run_programs(host=lambda: machine.threads.start("one", fail).join())
        assert [type(error) for _, error in world.failures] == [KeyError]


def test_each_thread_has_objects_of_its_own_which_serve_later_worlds() -> None:
    def main() -> tuple[int, int, bool]:
        found = [id(machine.threads.local(socket_memory))]
        machine.threads.start("other", lambda: found.append(id(machine.threads.local(socket_memory)))).join()
        return *found, id(machine.threads.local(socket_memory)) == found[0]  # type: ignore[return-value]

    first, second, same = run(main)
    assert first != second
    assert same
    assert {*run(main)[:2]} == {first, second}


def socket_memory() -> bytearray:
    return bytearray(1_000_000)


def test_datagrams_are_read_into_one_memory() -> None:
    class Memory:
        octets, names, count, stride, size = bytearray(40), bytearray(64), 4, 10, 10

    def main() -> tuple[list[int], bytes, bytes]:
        reader, sender = machine.network.datagram(), machine.network.datagram()
        reader.bind(("127.0.0.1", 9_000))
        reader.setblocking(False)
        sender.bind(("127.0.0.1", 9_001))
        for text in (b"first", b"2nd"):
            sender.sendto(text, ("127.0.0.1", 9_000))
        machine.threads.semaphore(0).acquire(timeout=1.0)
        sizes = machine.network.reader_of_datagrams(Memory)(reader)
        return [*sizes], bytes(Memory.octets), bytes(Memory.names[:8])

    sizes, octets, name = run(main)
    assert sorted(sizes) == [3, 5]
    assert b"first" in octets
    assert name == socket.AF_INET.to_bytes(2, "little") + (9_001).to_bytes(2) + socket.inet_aton("127.0.0.1")


def test_a_killed_program_may_close_what_it_had_open() -> None:
    """The `finally` clauses of its threads run when the world is released."""
    fds: list[int] = []

    def main() -> None:
        fds.append(machine.files.open(Path("/file"), os.O_CREAT | os.O_RDWR))
        process = world.hosts["host"].processes[0]
        process.files.kill()
        machine.files.close(fds[0])
        with pytest.raises(OSError, match=r"\[Errno 9\]"):
            machine.files.write(fds[0], b"x")

    with scene() as world:
        world.run_programs(host=main)
