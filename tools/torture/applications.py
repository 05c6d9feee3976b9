"""The applications of `stablecast.lab.whole`, each as a process with a history file.

    python -m tools.torture.applications source|receiver JSON

The JSON is the job. Each application appends JSON objects, one a line, to its history. SIGKILL loses no line, because
each line is one write to the kernel. SIGUSR1 means that all faults are over. At SIGUSR2 an application forks.
"""

import asyncio
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

import uvloop

from stablecast.client import MisuseError, Source
from stablecast.lab.whole import applications

CALL_SECONDS = 2.0
"""Time limit for a call in a forked child."""


class History:
    def __init__(self, path: str, run: str, finishing: asyncio.Event) -> None:
        """Append to `path` in the name of `run`. `finishing` is set when all faults are over."""
        self.run = run
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.finishing = finishing

    def write(self, what: str, **fields: object) -> None:
        line = {"t": time.monotonic_ns(), "is": what, "run": self.run, **fields}
        os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")


async def main(role: str, job: Mapping[str, Any]) -> None:
    finishing, loop, task = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGUSR1, finishing.set)
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    members: list[Any] = []
    loop.add_signal_handler(signal.SIGUSR2, lambda: fork(job, members))
    history = History(job["history"], job["run"], finishing)  # its file shows that the signal handlers are in place
    await applications.run(role, history, {**job, "members": members})


def fork(job: Mapping[str, Any], members: Sequence[Any]) -> None:
    """Fork a child that calls everything it inherited, writes how each call ended, and keeps it all for a while."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the child
    if os.fork():
        return
    try:
        answers = asyncio.run(_answers(members))
        History(job["history"], job["run"], asyncio.Event()).write("forked", answers=answers)
        time.sleep(job["forks"])
    except BaseException:  # noqa: BLE001 - as the children of `multiprocessing` end
        traceback.print_exc()
    finally:
        os._exit(0)


async def _answers(members: Sequence[Any]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for member in members:
        for call in (_sent, _tried) if isinstance(member, Source) else (_read,):
            answers[f"{call.__name__} {len(answers)}"] = await _answer(call(member))
        with suppress(MisuseError):
            await asyncio.wait_for(member.close(), CALL_SECONDS)
    return answers


async def _answer(call: Coroutine[Any, Any, Any]) -> str:
    try:
        await asyncio.wait_for(call, CALL_SECONDS)
    except Exception as error:  # noqa: BLE001 - the judge decides which one is right
        return type(error).__name__
    return "an answer"


async def _sent(source: Source) -> None:
    await source.send(b"")


async def _tried(source: Source) -> None:
    source.try_send(b"")


async def _read(receiver: Any) -> None:
    await anext(aiter(receiver))


def run(role: str, job: Mapping[str, Any]) -> None:
    """Run one application in this process until it is ended."""
    factory = uvloop.new_event_loop if job.get("uvloop") else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(role, job))


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
