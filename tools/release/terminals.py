"""Terminals of a newcomer: real processes that do what the pages of the handbook say.

A page shows one run of a simulated world. On a real machine counters and instants differ, so a terminal waits for lines
of the same shape: equal text with any number in place of each number.
"""

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.release.environments import ReleaseError
from tools.site.pages import INTERRUPT, Fence, fences, steps

PATIENCE_SECONDS: Final = 60
"""Time limit for the output of one command."""

SETTLE_SECONDS: Final = 1.5
"""Time that a command without expected output gets."""

BUILT_IN: Final = ("pip", "cd", "export")
"""Commands of a page that the caller carries out, or that change only a terminal."""


def shape(line: str) -> str:
    """Return a line with the same sign for each number.

    >>> shape("order 17 is stable")
    'order # is stable'
    """
    return re.sub(r"\d+", "#", line.rstrip())


class Program:
    """A command that runs in the background, and its output so far."""

    def __init__(self, line: str, folder: Path, variables: Mapping[str, str]) -> None:
        self.line = line
        self.output: list[str] = []
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {line}" if "|" not in line else line],
            cwd=folder,
            env={**variables, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line.rstrip())

    @property
    def ended(self) -> bool:
        """Return whether the program has ended, and all its output is there."""
        return not self._reader.is_alive()

    def end(self, number: int) -> None:
        """Send a signal to the program, and wait for its end."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        self.process.wait(timeout=PATIENCE_SECONDS)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Terminals:
    """The terminals of a newcomer, who follows pages in one folder."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder, self._variables = folder, variables
        self._open: dict[str, Program] = {}
        self._seen: dict[Program, int] = {}
        self._all: list[Program] = []

    def follow(self, page: Path) -> Iterator[str]:
        """Do what a page says; yield each command. Raises ReleaseError if the output has another shape."""
        for block in fences(page.read_text(encoding="utf-8")):
            if block.is_file:
                (self._folder / block.caption).write_text(block.body, encoding="utf-8")
                yield f"save {block.caption}"
            elif block.is_console:
                yield from self._console(block)

    def close(self) -> None:
        for program in reversed(self._all):
            program.end(signal.SIGKILL)

    def _console(self, block: Fence) -> Iterator[str]:
        for step in steps(block.body):
            if step.command == INTERRUPT:
                self._open[block.caption].end(signal.SIGINT)
            elif step.command.startswith("pkill "):
                self._kill(shlex.split(step.command))
            elif step.command and step.command.split()[0] not in BUILT_IN:
                self._open[block.caption] = self._start(step.command.replace("\\\n", " "))
            yield step.command or "look"
            self._expect(self._open.get(block.caption), step.output)

    def _start(self, line: str) -> Program:
        program = Program(line, self._folder, self._variables)
        self._all.append(program)
        self._seen[program] = 0
        return program

    def _kill(self, words: Sequence[str]) -> None:
        """Do as pkill does, but only to programs of these terminals."""
        number = signal.SIGKILL if "-9" in words else signal.SIGTERM
        for program in self._all:
            if program.process.poll() is None and re.search(words[-1], program.line):
                program.end(number)

    def _expect(self, program: Program | None, lines: Sequence[str]) -> None:
        """Wait until new output has each line of the page, whatever its numbers."""
        if program is None:
            return
        missing = {shape(line) for line in lines if line.strip()}
        end = time.monotonic() + (PATIENCE_SECONDS if missing else SETTLE_SECONDS)
        while time.monotonic() < end:
            ended, seen = program.ended, self._seen[program]
            new = program.output[seen:]
            self._seen[program] = seen + len(new)
            missing -= {shape(line) for line in new}
            if (lines and not missing) or (not lines and program.process.poll() is not None):
                return
            if missing and ended:
                break
            if program.line.startswith("sleep "):
                end = time.monotonic() + SETTLE_SECONDS
            time.sleep(0.02)
        if missing:
            shown = "\n".join(program.output[-10:])
            raise ReleaseError(f"{program.line}: no line like {sorted(missing)}; its last lines are\n{shown}")
