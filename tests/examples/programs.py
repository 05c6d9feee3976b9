"""Example programs as processes in a directory of their own. Their output is read line by line."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.program import running
from tests.support.tree import ROOT

EXAMPLES = ROOT / "examples"
TRANSPORT = re.compile(r"\[TCP:127\.0\.0\.1:\d+\]")
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
SLOW = re.compile(r"Executing <.*> took [\d.]+ seconds$")
"""A note of asyncio on a busy machine, because `-X dev` switches its debug mode on."""

REG_ID = re.compile(r"(?<![\d.])\d{4,}(?!\d)")


class Example:
    """A running example and the lines that it printed so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._error = ""

    def until(self, text: str) -> None:
        """Read lines up to one that contains `text`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if text in line:
                return
        raise AssertionError(f"ended before {text!r}: {self.lines} {self.error()}")

    def until_noted(self, text: str) -> None:
        """Read lines of standard error up to one that contains `text`."""
        assert self.process.stderr is not None
        if not any(text in line for line in self.process.stderr):
            raise AssertionError(f"ended before it noted {text!r}: {self.lines}")

    def error(self) -> str:
        """Return standard error, without what was read before; the program must end by itself."""
        assert self.process.stderr is not None
        if not self.process.stderr.closed:
            lines = self.process.stderr.read().splitlines(keepends=True)
            self._error += "".join(line for line in lines if not SLOW.match(line))
        return self._error

    def end(self) -> int:
        """Read all lines and return the exit status."""
        assert self.process.stdout is not None
        self.lines += [line.rstrip("\n") for line in self.process.stdout]
        return self.process.wait()

    def interrupt(self) -> int:
        """Press Ctrl-C, read all lines and return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def kill(self) -> None:
        """End the process as a crash does."""
        self.process.kill()
        self.end()

    def transcript(self, names: dict[str, str]) -> list[str]:
        """Return the printed lines with names instead of RegIDs and addresses; see `masked`."""
        return [masked(line, names) for line in self.lines]


def masked(line: str, names: dict[str, str]) -> str:
    """Replace addresses and RegIDs by their `names`. A new one gets the next name of its kind.

    The transport of a source has no name, because the next life may listen elsewhere.
    """

    def named(kind: str, text: str) -> str:
        count = sum(name.startswith(kind) for name in names.values())
        return names.setdefault(text, f"{kind}{count + 1}")

    line = TRANSPORT.sub("[TCP]", line)
    line = ADDRESS.sub(lambda found: named("PLACE", found[0]), line)
    return REG_ID.sub(lambda found: named("ID", found[0]), line)


@contextmanager
def example(name: str, directory: Path, *arguments: str) -> Iterator[Example]:
    """Run an example in `directory`; end it at the end if it still runs."""
    program = (sys.executable, "-X", "dev", "-u", str(EXAMPLES / name))
    with running(*arguments, program=program, directory=directory) as started:
        run = Example(started.process)
        yield run
        started.process.send_signal(signal.SIGINT)
        assert "Warning" not in run.error(), f"{name} warns: {run.error()}"
