"""Commands and other programs as processes that do not outlive a test."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.processes import HANG_S
from tests.support.tree import PYTHON_PATH

PROGRAM = (sys.executable, "-m", "stablecast.cli.main")


class Program:
    """A running program. Its standard output is read line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def line(self) -> str:
        """Return the next line of standard output, or an empty string at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def json_line(self) -> Any:
        """Return the next line of standard output, decoded as JSON."""
        line = self.line()
        if not line:
            raise AssertionError(f"the program ended with {self.end()}")
        return json.loads(line)

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Send a signal, by default the one of Ctrl-C."""
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; return the status, the unread standard output and the standard error."""
        out, err = self.process.communicate()
        return self.process.returncode, out, err


def _default_signals() -> None:
    """Reset signals in the child: under `nohup`, or behind `&` in a shell, it would inherit that they are ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def running(
    *arguments: str | Path,
    program: Sequence[str] = PROGRAM,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Program]:
    """Run `stablecast`, or another program, with these arguments; interrupt it at the end if it still runs."""
    process = subprocess.Popen(
        [*program, *map(str, arguments)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_default_signals,  # noqa: PLW1509 - it sets one signal and touches nothing else
    )
    with process:
        try:
            yield Program(process)
        finally:
            process.send_signal(signal.SIGINT)  # not SIGKILL at once, because it may have children to end
            try:
                process.wait(HANG_S)
            finally:
                process.kill()


@contextmanager
def store(directory: Path, *arguments: str | Path, listen: str = "127.0.0.1:0") -> Iterator[tuple[Program, str]]:
    """Run a store; yield it with its address when it is ready."""
    directory.mkdir(exist_ok=True)
    with running("store", directory, "--listen", listen, "--new", "--json", *arguments) as program:
        yield program, program.json_line()["address"]


@contextmanager
def lbmrd(listen: str = "127.0.0.1:0") -> Iterator[tuple[Program, str]]:
    """Run a relay; yield it with its address when it is ready."""
    with running("lbmrd", "--listen", listen, "--json") as program:
        yield program, f"{listen.rpartition(':')[0]}:{program.json_line()['port']}"


def outcome(*arguments: str | Path, typed: str = "") -> tuple[int, str, str]:
    """Run `stablecast` to its end; return the status, the standard output and the standard error."""
    with running(*arguments) as program:
        out, err = program.process.communicate(typed)
        return program.process.returncode, out, err
