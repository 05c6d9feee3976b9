"""The applications of `stablecast.lab.whole`, each as a process with a history file.

    python -m tools.torture.applications source|receiver JSON

The JSON is the job. Each application appends JSON objects, one a line, to its history. SIGKILL loses no line, because
each line is one write to the kernel. SIGUSR1 means that all faults are over.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

import uvloop

from stablecast.lab.whole import applications


class History:
    """The history file of an application."""

    def __init__(self, path: str, run: str, finishing: asyncio.Event) -> None:
        """Append to `path` in the name of `run`. `finishing` is set when all faults are over."""
        self.run = run
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.finishing = finishing

    def write(self, what: str, **fields: object) -> None:
        """Append a line with the time and the name of the run."""
        line = {"t": time.monotonic_ns(), "is": what, "run": self.run, **fields}
        os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")


async def main(role: str, job: Mapping[str, Any]) -> None:
    """Run one application until it is ended."""
    finishing, loop, task = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGUSR1, finishing.set)
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    history = History(job["history"], job["run"], finishing)  # its file shows that the signal handlers are in place
    await applications.run(role, history, job)


def run(role: str, job: Mapping[str, Any]) -> None:
    """Run one application in this process until it is ended."""
    factory = uvloop.new_event_loop if job.get("uvloop") else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(role, job))


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
