"""Three processes, one run: a source, a receiver and a store, whatever code plays them.

Each role is a function that runs in a process of its own and talks to the runner over a pipe: it says where it can be
reached, waits for the start, says its figures, and leaves when all have, so that no figure contains a farewell.
"""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import attrs

DEADLINE_SECONDS = 300.0
"""A run that takes longer has lost a process or a message."""


class BenchError(Exception):
    """A run did not do what it measures."""


@attrs.frozen
class Work:
    """What to do: so many messages of `size` bytes, at most `flight` of them unstable, in a folder of the run's own.

    Attributes:
        messages: To send.
        size: Bytes of a payload.
        flight: Messages that may be unstable.
        directory: The run's own folder.
        trace: Where traces go, if there are any.
        per_s: Messages sent in a second; 0: as many as go.
        pause_s: How long the first store is stopped in the middle of the run, in seconds.
        sync_ns: How much longer every flush of the disk takes.
        prompt: Contexts ask the kernel to be prompt.
    """

    messages: int
    size: int
    flight: int
    directory: Path
    trace: Path | None = None
    per_s: int = 0
    pause_s: float = 0.0
    sync_ns: int = 0
    prompt: bool = True


@attrs.define
class Wire:
    """A role's end of its pipe, and where the roles that were started before it can be reached."""

    name: str
    pipe: Connection
    addresses: Mapping[str, str]
    pids: Mapping[str, int]
    cpu: float = 0.0

    def named(self, role: str) -> list[str]:
        """The addresses of all whose name begins like this, in their order."""
        return [address for name, address in self.addresses.items() if name.startswith(role)]

    def ready(self, address: str = "") -> None:
        """Say that this role is set up; blocks until all are."""
        self.pipe.send(("ready", address))
        self.pipe.recv()
        self.cpu = time.process_time()

    def done(self, **figures: float) -> None:
        """Say what was measured; blocks until all have, then says what processor time it took, in seconds."""
        self.pipe.send(("done", figures))
        self.pipe.recv()
        self.pipe.send(("left", time.process_time() - self.cpu))


Role = Callable[[Work, Wire], Any]


def run(roles: Mapping[str, Role], work: Work) -> dict[str, dict[str, float]]:
    """Start the roles in order, let them work, and return each one's figures and `cpu_us`, its time for a message.

    Raises:
        BenchError: If a role failed or the run took longer than `DEADLINE_SECONDS`.
    """
    context = multiprocessing.get_context("spawn")  # no role inherits a thread, a loop or a descriptor
    addresses: dict[str, str] = {}
    pids: dict[str, int] = {}
    pipes: dict[str, Connection] = {}
    processes = []
    try:
        for name, role in roles.items():
            pipes[name], theirs = context.Pipe()
            wire = Wire(name, theirs, dict(addresses), dict(pids))
            process = context.Process(target=_play, args=(role, work, wire), daemon=True)
            process.start()
            pids[name] = process.pid or 0
            theirs.close()
            processes.append(process)
            addresses[name] = _hear(name, pipes[name], "ready")
        for pipe in pipes.values():
            pipe.send("go")
        figures = _hear_all(pipes, "done")
        for pipe in pipes.values():
            pipe.send("leave")
        for name, seconds in _hear_all(pipes, "left").items():
            figures[name]["cpu_us"] = seconds / work.messages * 1e6
        for process in processes:
            process.join(DEADLINE_SECONDS)
        return figures
    finally:
        for process in processes:
            process.kill()
            process.join()


def _play(role: Role, work: Work, wire: Wire) -> None:
    try:
        role(work, wire)
    except Exception:  # noqa: BLE001 - whatever it is, the runner shows it
        wire.pipe.send(("failed", traceback.format_exc()))


def _hear_all(pipes: Mapping[str, Connection], expected: str) -> dict[str, Any]:
    """What each role says; the first failure ends the run, whoever else would wait for that role."""
    waiting = {pipe: name for name, pipe in pipes.items()}
    said = {}
    while waiting:
        speaking = [pipe for pipe in wait(list(waiting), DEADLINE_SECONDS) if isinstance(pipe, Connection)]
        for pipe in speaking or waiting:
            name = waiting[pipe]
            said[name] = _hear(name, pipe, expected)
        waiting = {pipe: name for pipe, name in waiting.items() if name not in said}
    return {name: said[name] for name in pipes}


def _hear(name: str, pipe: Connection, expected: str) -> Any:
    if not pipe.poll(DEADLINE_SECONDS):
        raise BenchError(f"the {name} was not {expected} within {DEADLINE_SECONDS:g} s")
    try:
        said, content = pipe.recv()
    except EOFError:
        raise BenchError(f"the {name} died before it was {expected}") from None
    if said != expected:
        raise BenchError(f"the {name} failed:\n{content}")
    return content
