"""Example programs as processes, read line by line, in a directory of their own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.program import PATH
from tests.support.tree import ROOT

EXAMPLES = ROOT / "examples"
TRANSPORT = re.compile(r"\[TCP:127\.0\.0\.1:\d+\]")
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
REG_ID = re.compile(r"(?<![\d.])\d{4,}(?!\d)")


class Example:
    """A running example and what it printed so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []

    def until(self, text: str) -> None:
        """Read on until a line has this text."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if text in line:
                return
        raise AssertionError(f"ended before {text!r}: {self.lines} {self.error()}")

    def error(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def end(self) -> int:
        """Read to the end; returns the exit status."""
        assert self.process.stdout is not None
        self.lines += [line.rstrip("\n") for line in self.process.stdout]
        return self.process.wait()

    def interrupt(self) -> int:
        """Ctrl-C; returns the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def kill(self) -> None:
        """As a crash."""
        self.process.kill()
        self.end()

    def transcript(self, names: dict[str, str]) -> list[str]:
        """What it printed, with RegIDs and addresses by name in the order in which they first occur in `names`."""
        return [masked(line, names) for line in self.lines]


def masked(line: str, names: dict[str, str]) -> str:
    """The line with `names` for its addresses and RegIDs; new ones get the next name of their kind.

    A source's transport has no name: the next life may listen elsewhere.
    """

    def named(kind: str, text: str) -> str:
        count = sum(name.startswith(kind) for name in names.values())
        return names.setdefault(text, f"{kind}{count + 1}")

    line = TRANSPORT.sub("[TCP]", line)
    line = ADDRESS.sub(lambda found: named("PLACE", found[0]), line)
    return REG_ID.sub(lambda found: named("ID", found[0]), line)


@contextmanager
def example(name: str, directory: Path, *arguments: str) -> Iterator[Example]:
    """An example that runs in `directory`; killed at the end if it still does."""
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": PATH, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Example(process)
        finally:
            process.kill()
