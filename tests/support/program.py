"""`stablecast` as processes that do not outlive a test."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.tree import LAYERS, ROOT

PATH = os.pathsep.join(str(ROOT / layer) for layer in LAYERS)
STOP_SECONDS = 20
"""After that it hangs."""
PROGRAM = (sys.executable, "-m", "stablecast.cli.main")


class Program:
    """A running command; its standard output is read line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def line(self) -> str:
        """The next line that it prints; empty at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def said(self) -> Any:
        """The next line, as JSON."""
        line = self.line()
        if not line:
            raise AssertionError(f"it ended with {self.end()}")
        return json.loads(line)

    def write(self, text: str) -> None:
        """Types something."""
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Ctrl-C."""
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Waits for its end: status, the rest of its output, and its standard error."""
        out, err = self.process.communicate()
        return self.process.returncode, out, err


def _mind_hang_ups() -> None:
    """In the child: what `nohup` told the tests is not for what they test."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def running(*arguments: str | Path, program: Sequence[str] = PROGRAM) -> Iterator[Program]:
    """`stablecast`, or another program, with these arguments; ended at the end if it still runs."""
    process = subprocess.Popen(
        [*program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_mind_hang_ups,  # noqa: PLW1509 - it sets one signal and touches nothing else
    )
    with process:
        try:
            yield Program(process)
        finally:
            process.send_signal(signal.SIGINT)  # not SIGKILL at once: it may have children to end
            try:
                process.wait(STOP_SECONDS)
            finally:
                process.kill()


@contextmanager
def store(directory: Path, *arguments: str | Path, listen: str = "127.0.0.1:0") -> Iterator[tuple[Program, str]]:
    """A store that is ready, and its address."""
    directory.mkdir(exist_ok=True)
    with running("store", directory, "--listen", listen, "--new", "--json", *arguments) as program:
        yield program, program.said()["address"]


@contextmanager
def lbmrd() -> Iterator[tuple[Program, str]]:
    """A relay that is ready, and its address."""
    with running("lbmrd", "--listen", "127.0.0.1:0", "--json") as program:
        yield program, f"127.0.0.1:{program.said()['port']}"


def outcome(*arguments: str | Path, typed: str = "") -> tuple[int, str, str]:
    """Runs `stablecast` to its end: status, output, standard error."""
    with running(*arguments) as program:
        out, err = program.process.communicate(typed)
        return program.process.returncode, out, err
