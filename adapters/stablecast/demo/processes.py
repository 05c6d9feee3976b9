"""Child processes of the demo and of `stablecast up`: each says JSON lines on its standard output."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from stablecast.core.errors import StablecastError

READY_SECONDS = 20.0
"""How long a child may take until it says that it is ready."""

STOP_SECONDS = 10.0
"""How long a child may take to stop cleanly."""

LINE_BYTES = 1 << 20

Report = dict[str, Any]


class ChildError(StablecastError):
    """A child process did not do its part; the message names it and what it said."""


class Child:
    """One process; `on_report` hears every JSON line it says."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        on_report: Callable[[str, Report], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`python -m` `arguments` under a name for people, with additions to the environment."""
        self.name = name
        self._arguments = arguments
        self._on_report = on_report
        self._environment = {**os.environ, **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Report] | None = None

    def listen_at(self, address: str) -> None:
        """From the next start on listen at this address."""
        at = self._arguments.index("--listen")
        self._arguments[at + 1] = address

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> Report:
        """Start and wait for the ready line. Raises ChildError."""
        self._ready = asyncio.get_running_loop().create_future()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *self._arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES,
            env=self._environment,
        )
        self._reader = asyncio.get_running_loop().create_task(self._read(self._process))
        try:
            return await asyncio.wait_for(asyncio.shield(self._ready), READY_SECONDS)
        except TimeoutError:
            raise ChildError(
                f"{self.name} was not ready after {READY_SECONDS:g} s; look at its messages above"
            ) from None

    async def kill(self) -> None:
        """SIGKILL, as a crash."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """SIGINT, and SIGKILL if that does not end it. Raises ChildError in that case."""
        if not self.running:
            await self._end(None)
            return
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._end(signal.SIGINT)
        except TimeoutError:
            await self.kill()
            raise ChildError(f"{self.name} did not stop within {STOP_SECONDS:g} s of an interrupt") from None

    async def wait(self) -> int:
        """Wait until the process ends by itself; returns its exit status."""
        assert self._process is not None
        assert self._reader is not None
        await self._reader
        return await self._process.wait()

    async def _end(self, number: signal.Signals | None) -> None:
        if self._process is None:
            return
        if number is not None and self._process.returncode is None:
            self._process.send_signal(number)
        await self.wait()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            report = json.loads(line)
            if report.get("ready") and self._ready is not None and not self._ready.done():
                self._ready.set_result(report)
            self._on_report(self.name, report)
        await process.wait()
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(
                ChildError(f"{self.name} ended with status {process.returncode} before it was ready")
            )
