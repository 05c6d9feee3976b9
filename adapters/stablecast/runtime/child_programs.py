"""Run the child processes of the demo and of `stablecast up`. Each prints JSON lines on its standard output.

A child has its own session: an interrupt at the terminal reaches only the parent, which ends its children.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.errors import StablecastError
from stablecast.text.exit_status import INTERRUPTED

READY_SECONDS = 20.0
"""Longest time until a child is ready, in seconds."""

STOP_SECONDS = 10.0
"""Longest time for a clean stop, in seconds."""

LINE_BYTES = 1 << 20
"""Longest report of a child, in bytes."""

Report = dict[str, Any]


class ChildError(StablecastError):
    """Report a child process that failed, with its name and last output.

    Attributes:
        killed_by: The signal that killed it; 0 if it ended by itself.
    """

    killed_by = 0


@attrs.define(eq=False)
class Child:
    """Run `python -m` with arguments, as a process which may be killed and started again.

    Attributes:
        name: Name for people.
        arguments: A module and its arguments.
        on_end: Called when a ready process ends unexpectedly.
        on_report: Called with every JSON line of the process.
        environment: Additions to the environment.
        log: File for its standard error; None: that of this process.
        directory: A directory that exists at each start.
    """

    name: str
    _arguments: list[str]
    _on_end: Callable[[ChildError], None]
    _on_report: Callable[[Report], None] | None = attrs.field(default=None, kw_only=True)
    _environment: Mapping[str, str] | None = attrs.field(default=None, kw_only=True)
    _log: Path | None = attrs.field(default=None, kw_only=True)
    _directory: Path | None = attrs.field(default=None, kw_only=True)
    _process: asyncio.subprocess.Process | None = None
    _reader: asyncio.Task[int] | None = None
    _ending: bool = False

    def listen_at(self, address: str) -> None:
        """Listen at this address from the next start on."""
        at = self._arguments.index("--listen")
        self._arguments[at + 1] = address

    def return_as_known(self) -> None:
        """Start a store from now on as one that existed before: what it lacks then was lost."""
        self._arguments = [one for one in self._arguments if one != "--new"]

    async def start(self) -> Report:
        """Start the process and wait for its ready line. Raises ChildError."""
        self._ending = False
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[Report | None] = loop.create_future()
        with contextlib.nullcontext() if self._log is None else self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=LINE_BYTES,
                env={**os.environ, **(self._environment or {})},
                start_new_session=True,
            )
        self._reader = loop.create_task(self._read(self._process, ready))
        try:
            report = await asyncio.wait_for(asyncio.shield(ready), READY_SECONDS)
        except TimeoutError:
            raise ChildError(f"{self.name} was not ready after {READY_SECONDS:g} s; {self._last_words()}") from None
        if report is None:
            raise self._ended(await self._reader)
        return report

    async def kill(self) -> None:
        """Kill the process as a crash would, if it runs."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """Interrupt the process and wait, if it runs.

        Raises:
            ChildError: it did not end in time, or failed.
        """
        try:
            async with asyncio.timeout(STOP_SECONDS):
                status = await self._end(signal.SIGINT)
        except TimeoutError:
            await self.kill()
            raise ChildError(f"{self.name} did not stop within {STOP_SECONDS:g} s of an interrupt") from None
        if status not in (0, INTERRUPTED):
            raise self._ended(status)

    async def _end(self, number: signal.Signals) -> int:
        if self._process is None or self._reader is None or self._process.returncode is not None:
            return 0
        self._ending = True
        self._process.send_signal(number)
        return await asyncio.shield(self._reader)

    async def _read(self, process: asyncio.subprocess.Process, ready: "asyncio.Future[Report | None]") -> int:
        """Pass on the process's reports; return its exit status."""
        assert process.stdout is not None
        async for line in process.stdout:
            report = json.loads(line)
            if self._on_report is not None:
                self._on_report(report)
            if "ready" in report and not ready.done():
                ready.set_result(report)
        status = await process.wait()
        if not ready.done():
            ready.set_result(None)
        elif not self._ending:
            self._on_end(self._ended(status))
        return status

    def _ended(self, status: int) -> ChildError:
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        error = ChildError(f"{self.name} {how}; {self._last_words()}")
        error.killed_by = max(0, -status)
        return error

    def _last_words(self) -> str:
        if self._log is None:
            return "see its messages above"
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"its last output: '{lines[-1]}'" if lines else "it printed nothing"


async def start_all(children: Iterable[Child]) -> list[Report]:
    """Start several children at the same time; return their ready lines.

    When this raises, as `Child.start` does, no other start is in progress.
    """
    starts = [asyncio.create_task(child.start()) for child in children]
    try:
        return await asyncio.gather(*starts)
    finally:
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)
