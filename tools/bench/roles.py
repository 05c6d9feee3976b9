"""One run of several processes: a source, a receiver and stores, each with interchangeable code.

Each role is a function in a process of its own. It reports its address to the runner over a pipe, waits for the start,
and reports its figures. All roles end together after all figures, so that no figure includes the end of another role.
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
    """A run failed, so its figures mean nothing."""


@attrs.frozen
class Work:
    """The work of one run.

    Attributes:
        messages: Number of messages to send.
        size: Bytes of a payload.
        flight: Largest number of unstable messages.
        directory: The run's own folder.
        trace: Folder of the traces, or None to write none.
        per_s: Messages sent in a second; 0: as many as possible.
        pause_s: Time for which the first store is stopped in the middle of the run, in seconds.
        sync_ns: Additional duration of every flush of the disk.
        prompt: Whether contexts ask the kernel for short latencies.
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
    """A role's end of its pipe, and the addresses and process ids of the roles that started earlier."""

    name: str
    pipe: Connection
    addresses: Mapping[str, str]
    pids: Mapping[str, int]
    cpu: float = 0.0

    def named(self, role: str) -> list[str]:
        """Return the addresses of all roles whose names start with `role`, in their order."""
        return [address for name, address in self.addresses.items() if name.startswith(role)]

    def ready(self, address: str = "") -> None:
        """Report that this role is ready at an address; block until all roles are."""
        self.pipe.send(("ready", address))
        self.pipe.recv()
        self.cpu = time.process_time()

    def done(self, **figures: float) -> None:
        """Report the figures, block until all roles have, and then report the processor time in seconds."""
        self.pipe.send(("done", figures))
        self.pipe.recv()
        self.pipe.send(("left", time.process_time() - self.cpu))


Role = Callable[[Work, Wire], Any]


def run(roles: Mapping[str, Role], work: Work, within_s: float = DEADLINE_SECONDS) -> dict[str, dict[str, float]]:
    """Start the roles in order and let them work; return their figures and `cpu_us`, the processor time per message.

    Raises:
        BenchError: If a role failed or the run took longer than `within_s`.
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
            addresses[name] = _report(name, pipes[name], "ready", within_s)
        for pipe in pipes.values():
            pipe.send("go")
        figures = _reports(pipes, "done", within_s)
        for pipe in pipes.values():
            pipe.send("leave")
        for name, seconds in _reports(pipes, "left", within_s).items():
            figures[name]["cpu_us"] = seconds / work.messages * 1e6
        for process in processes:
            process.join(within_s)
        return figures
    finally:
        for process in processes:
            process.kill()
            process.join()


def _play(role: Role, work: Work, wire: Wire) -> None:
    try:
        role(work, wire)
    except Exception:  # noqa: BLE001 - the runner shows every error
        wire.pipe.send(("failed", traceback.format_exc()))


def _reports(pipes: Mapping[str, Connection], expected: str, within_s: float) -> dict[str, Any]:
    """Return the report of each role. The first failure ends the run, because other roles may wait for that role."""
    waiting = {pipe: name for name, pipe in pipes.items()}
    reports = {}
    while waiting:
        readable = [pipe for pipe in wait(list(waiting), within_s) if isinstance(pipe, Connection)]
        for pipe in readable or waiting:
            name = waiting[pipe]
            reports[name] = _report(name, pipe, expected, within_s)
        waiting = {pipe: name for pipe, name in waiting.items() if name not in reports}
    return {name: reports[name] for name in pipes}


def _report(name: str, pipe: Connection, expected: str, within_s: float) -> Any:
    if not pipe.poll(within_s):
        raise BenchError(f"the {name} was not {expected} within {within_s:g} s")
    try:
        kind, content = pipe.recv()
    except EOFError:
        raise BenchError(f"the {name} died before it was {expected}") from None
    if kind != expected:
        raise BenchError(f"the {name} failed:\n{content}")
    return content
