"""The programs of a test on a real machine: child processes, their restarts, and the lines that they print."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from stablecast.core.errors import StablecastError
from stablecast.testing.timeline import ERROR, OUTPUT, PROGRAM

ERROR_LINES: Final = 40
"""Last lines of standard error that are kept of a process."""

RESTART_S: Final = 1.0
"""Seconds until a program starts again that failed and may fail."""


class RealProgramError(StablecastError):
    """A program of a test ended with an error; the message ends with what it printed."""


class RealProgram:
    """A program in a child process.

    Attributes:
        result: The value that it returned, if JSON can express it.
        output: The lines that it printed.
        failure: The error that ended it, unless it may fail.
        down: It was killed, and is not started again yet.
    """

    def __init__(
        self,
        name: str,
        host: str,
        directory: Path,
        command: Callable[[], Sequence[str]],
        report: Callable[[str, str, str], object],
        *,
        job: Mapping[str, Any] | None = None,
        may_fail: bool = False,
    ) -> None:
        """Describe a program; `job` is written to its standard input."""
        self.name = name
        self.host = host
        self.starts = 0
        self.ended = False
        self.down = False
        self.result: Any = None
        self.output: list[str] = []
        self.failure: RealProgramError | None = None
        self.ready = asyncio.Event()
        self._over = asyncio.Event()
        self._directory = directory
        self._command = command
        self._report = report
        self._job = job
        self._may_fail = may_fail
        self._is_killed = False
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """True while a process of the program runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def is_starting(self) -> bool:
        """True until its newest process calls the function."""
        return self._job is not None and not self.ended and not Path(self._job["begun"]).exists()

    def start(self) -> None:
        if self._job is not None:
            Path(self._job["begun"]).unlink(missing_ok=True)
        self.starts += 1
        self.down = False
        again = "" if self.starts == 1 else f" again (start {self.starts})"
        self._report(self.host, PROGRAM, f"{self.name} starts{again}")
        self._watching = asyncio.create_task(self._run(self._watching))

    def kill(self) -> None:
        """Kill the process, as a crash does."""
        self.down = self._is_killed = True
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Suspend the process by SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process continue."""
        self._signal(signal.SIGCONT)

    async def wait(self) -> Any:
        """Wait until the program returns, and return its result."""
        await self._over.wait()
        return self.result

    async def close(self) -> None:
        self._may_fail = self.ended = True
        self._signal(signal.SIGKILL)
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _run(self, previous: "asyncio.Task[None] | None") -> None:
        """Run one process to its end, after the previous one has ended, and decide what follows."""
        if previous is not None:
            await previous
        self._is_killed = False
        self._directory.mkdir(parents=True, exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *self._command(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._directory,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._process = process
        if self._is_killed:  # A fault struck before the system had made the process.
            process.kill()
        assert process.stdin is not None
        if self._job is not None:
            process.stdin.write(json.dumps(self._job).encode() + b"\n")
        process.stdin.close()
        errors: list[str] = []
        await asyncio.gather(self._read(process.stdout, self._on_line), self._read(process.stderr, errors.append))
        self._on_end(await process.wait(), errors[-ERROR_LINES:])

    @staticmethod
    async def _read(stream: asyncio.StreamReader | None, on_line: Callable[[str], object]) -> None:
        assert stream is not None
        async for line in stream:
            on_line(line.decode(errors="replace").rstrip("\n"))

    def _on_line(self, line: str) -> None:
        self.output.append(line)
        self.ready.set()
        self._report(self.host, OUTPUT, line)

    def _on_end(self, status: int, errors: list[str]) -> None:
        if self.ended or self._is_killed:
            return
        if status == 0:
            self.ended = True
            if self._job is not None:
                self.result = json.loads(Path(self._job["result"]).read_text(encoding="utf-8"))
            self._report(self.host, PROGRAM, f"{self.name} returns {self.result!r}"[:200])
            self._over.set()
            return
        self._report(self.host, ERROR, f"{self.name} fails: {errors[-1] if errors else f'exit status {status}'}")
        if self._may_fail:
            self.down = True
            asyncio.get_running_loop().call_later(RESTART_S, self.start)
        elif self.failure is None:
            self.failure = RealProgramError(f"{self.name} on {self.host} failed:\n" + "\n".join(errors))
