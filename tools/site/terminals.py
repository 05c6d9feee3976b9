"""Terminals of a reader in a world of virtual time: the shipped programs and the pages' own, on simulated hosts.

A world repeats itself event by event, so the outputs of a page are equal on every machine. The shell knows only the
commands that pages use.
"""

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast
from unittest.mock import patch

from stablecast.cli.app import app
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.lab.world.kernel import Kernel
from stablecast.lab.world.process import Console, SimulatedProcess
from stablecast.lab.world.world import LIMIT_S, World
from stablecast.runtime import machine
from stablecast.text.exit_status import guarded
from tests.support.tree import PYTHON_PATH

HOST: Final = "laptop"
"""The host of terminals that name none."""

DIRECTORY: Final = "/srv/demo"
"""The directory in which the reader works."""

QUIET_NS: Final = 2 * SECOND
"""A program that prints nothing for so long has printed what the page shows, and continues."""

BUSY_NS: Final = 4 * SECOND
"""A program that goes on printing is shown for so long after a command."""

BEAT_NS: Final = 50 * MILLISECOND
"""Interval in which the shell looks whether a program is quiet."""

SIGNALS: Final = {"-9": signal.SIGKILL, "-INT": signal.SIGINT, "-STOP": signal.SIGSTOP, "-CONT": signal.SIGCONT}
TEST_SECONDS: Final = 300
"""Time limit of a run of pytest."""

ASSIGNMENT = re.compile(r"^[A-Z_]+=")
SEED: Final = 7


class ShellError(Exception):
    """A page uses a command that the shell does not know."""


class Lines(list[str]):
    """Lines of a console that are also given to a function."""

    def __init__(self, on_line: Callable[[str], object]) -> None:
        super().__init__()
        self._on_line = on_line

    def __iadd__(self, lines: Iterable[str]) -> "Lines":  # type: ignore[misc,override]  # as `Console` uses it
        for line in lines:
            self.append(line)
            self._on_line(line)
        return self


class ChildProcess:
    """A subprocess of a program, as asyncio returns it, that is another program of the world."""

    def __init__(self, child: SimulatedProcess, stdout: asyncio.StreamReader) -> None:
        self._child = child
        self._signal = 0
        self.stdout = stdout

    @property
    def returncode(self) -> int | None:
        """Return the exit status, negative for a signal, None while the process runs."""
        if not self._child.gone:
            return None
        return -self._signal if self._signal == signal.SIGKILL else int(self._child.status or 0)

    def send_signal(self, number: int) -> None:
        self._signal = number
        self._child.signal(number)

    async def wait(self) -> int | None:
        await self._child.wait()
        return self.returncode


class Shell:
    """The terminals of one page. A terminal is named by the caption of its blocks."""

    def __init__(self, seed: int = SEED) -> None:
        self.world = World(seed)
        self._terminals: dict[str, SimulatedProcess] = {}
        self._commands: dict[SimulatedProcess, str] = {}
        self._shown: dict[str, int] = {}
        self._files: dict[str, dict[str, str]] = {}

    @property
    def kernel(self) -> Kernel:
        return self.world.kernel

    @contextmanager
    def open(self) -> Iterator["Shell"]:
        """Install the world while the context lasts."""
        with (
            self.world.open(),
            patch.object(asyncio, "create_subprocess_exec", self._spawn),
            patch.object(machine.process, "input_descriptor", self._input(machine.process.input_descriptor)),
            patch.object(machine.process, "errors", self._errors),
        ):
            yield self

    def _running(self) -> SimulatedProcess:
        return cast("SimulatedProcess", self.kernel.running().owner)

    def _input(self, refuse: Callable[[], int]) -> Callable[[], int]:
        """Return a function that opens the text that was piped into a program."""

        def input_descriptor() -> int:
            path = self._running().memory.get("stdin")
            return refuse() if path is None else machine.files.open(path, os.O_RDONLY)

        return input_descriptor

    def _errors(self) -> Any:
        """Return the stream for people: that of the parent, if another program started this one."""
        process = self._running()
        return process.memory.get("errors", process.console)

    def save(self, terminal: str, name: str, content: str) -> None:
        disk = self.world.host(host_of(terminal)).disk
        disk.make_directories(os.path.dirname(f"{DIRECTORY}/{name}"))  # noqa: PTH120 - a path of the simulated disk
        disk.place_file(f"{DIRECTORY}/{name}", content.encode())
        self._files.setdefault(host_of(terminal), {})[name] = content

    def run(self, terminal: str, command: str) -> list[str]:
        """Run a command in a terminal; return what it prints until it ends or is quiet."""
        if command == "^C":
            self._terminals[terminal].signal(signal.SIGINT)
            return self.output(terminal)
        if command:
            line = command.replace("\\\n", " ")
            if line.startswith("pytest "):
                return self._test(terminal, line)
            self._start(terminal, line)
        return self.output(terminal)

    def output(self, terminal: str) -> list[str]:
        """Return the lines that were printed in a terminal since the last call."""
        process = self._terminals[terminal]
        self._settle(process)
        if process.error is not None:
            raise process.error
        shown = self._shown.get(terminal, 0)
        self._shown[terminal] = len(process.output)
        lines = [line.rstrip() for line in process.output[shown:]]
        for filter_ in process.memory.get("filters", ()):
            lines = filter_(lines)
        return lines

    def _test(self, terminal: str, line: str) -> list[str]:
        """Run pytest on the files of a page: outside of the world, because it makes worlds of its own."""
        first, *rest = [shlex.split(part) for part in split_pipes(line)]
        prefix = f"{DIRECTORY}/"
        with TemporaryDirectory() as folder:
            for path, content in self._files[host_of(terminal)].items():
                Path(folder, path).write_text(content, encoding="utf-8")
            plugins = ["-p", "stablecast.testing.plugin", "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", *first, *plugins, "--rootdir", folder]
            environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            environment |= {"PYTHONPATH": PYTHON_PATH, "COLUMNS": "100", "PYTEST_ADDOPTS": "--stablecast-jobs 1"}
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=TEST_SECONDS
            )
        lines = done.stdout.replace(folder, prefix).splitlines()
        for words in rest:
            lines = filter_of(words)(lines)
        return lines

    # ------------------------------------------------------------------------------------------------------- commands

    def _start(self, terminal: str, line: str) -> None:
        first, *rest = [shlex.split(part, comments=True) for part in split_pipes(line)]
        typed = None
        if rest and first[0] in ("echo", "printf"):
            typed = typed_text(first)
            first, *rest = rest
        process = self._process(host_of(terminal), first)
        process.memory["filters"] = [filter_of(words) for words in rest]
        if typed is not None:
            path = f"{DIRECTORY}/.typed-{process.number}"
            process.host.disk.place_file(path, typed.encode())
            process.memory["stdin"] = path
        self._terminals[terminal] = process
        self._shown[terminal] = 0

    def _process(self, host: str, words: Sequence[str]) -> SimulatedProcess:
        machine_ = self.world.host(host)
        machine_.disk.make_directories(DIRECTORY)
        process = machine_.process(host)
        process.files.chdir(DIRECTORY)
        words = list(words)
        while words and ASSIGNMENT.match(words[0]):
            variable, _, value = words.pop(0).partition("=")
            process.environment[variable] = value
        process.environment.setdefault("COLUMNS", "100")
        self._commands[process] = shlex.join(words)
        process.call(self._main(process, words))
        return process

    def _main(self, process: SimulatedProcess, words: list[str]) -> Callable[[], Any]:
        match words:
            case ["stablecast", *arguments]:
                return lambda: guarded(lambda: int(app(arguments, prog_name="stablecast") or 0))
            case ["python", path, *arguments]:
                return lambda: run_program(path, arguments)
            case ["pkill", *options, pattern]:
                number = next((SIGNALS[one] for one in options if one in SIGNALS), signal.SIGTERM)
                return lambda: self._signal(process, pattern, number)
            case ["kill", option, "$(cat", *locks]:  # The lock of a store's directory has its process.
                stores = "|".join(one.removesuffix(")").removesuffix("/lock") for one in locks)
                return lambda: self._signal(process, f"store ({stores})", SIGNALS.get(option, signal.SIGTERM))
            case ["sleep", seconds]:
                return lambda: self.kernel.sleep(int(float(seconds) * SECOND))
            case ["pip" | "cd" | "export", *_]:
                return lambda: None
            case [name, *arguments] if name in BUILTINS:
                return lambda: BUILTINS[name](*arguments)
        raise ShellError(f"the shell of the handbook does not know {shlex.join(words)!r}")

    def _signal(self, own: SimulatedProcess, pattern: str, number: int) -> int:
        found = [
            one
            for one, command in self._commands.items()
            if one is not own and one.host is own.host and not one.gone and re.search(pattern, command)
        ]
        for one in found:
            one.signal(number)
        return 0 if found else 1

    async def _spawn(self, *command: str, **_: Any) -> ChildProcess:
        """Start a Python module as another process of the host that runs now, as `create_subprocess_exec` does."""
        loop = asyncio.get_running_loop()
        parent: Any = self.kernel.running().owner
        reader = asyncio.StreamReader(loop=loop)
        module, arguments = command[2], command[3:]
        assert module == "stablecast.cli.main", command
        child = self._process(parent.host.name, ["stablecast", *arguments])
        child.output = Lines(lambda line: loop.call_soon_threadsafe(reader.feed_data, f"{line}\n".encode()))
        child.console = Console(child.output)
        child.memory["errors"] = parent.console
        ended = asyncio.ensure_future(child.wait())
        ended.add_done_callback(lambda _: reader.feed_eof())
        return ChildProcess(child, reader)

    def _settle(self, process: SimulatedProcess) -> None:
        """Let time pass until the process has ended or is quiet."""
        kernel = self.kernel
        count, since, end = -1, kernel.now, kernel.now + BUSY_NS

        def settled() -> bool:
            nonlocal count, since
            if len(process.output) != count:
                count, since = len(process.output), kernel.now
            if self._commands[process].startswith("sleep "):
                return process.gone
            return process.gone or kernel.now - since >= QUIET_NS or (count > 0 and kernel.now >= end)

        def beat() -> None:
            if not settled():
                kernel.after(BEAT_NS, beat)

        kernel.after(0, beat)
        kernel.run(settled, kernel.now + LIMIT_S * SECOND)


def host_of(terminal: str) -> str:
    """Return the host that the caption of a terminal names: `On store-a`, `On store-a, terminal 2`.

    >>> host_of("On store-a, terminal 2"), host_of("Terminal 2")
    ('store-a', 'laptop')
    """
    found = re.match(r"On ([\w.-]+)", terminal)
    return found[1] if found else HOST


def split_pipes(line: str) -> list[str]:
    """Split a line at the pipes that stand outside of quotes.

    >>> split_pipes("echo 'a|b' | head -1")
    ["echo 'a|b' ", ' head -1']
    """
    lexer = re.findall(r"'[^']*'|\"[^\"]*\"|\||[^'\"|]+", line)
    parts = [""]
    for token in lexer:
        if token == "|":
            parts.append("")
        else:
            parts[-1] += token
    return parts


def typed_text(words: Sequence[str]) -> str:
    """Return what `echo` or `printf` writes into a pipe."""
    if words[0] == "echo":
        return " ".join(words[1:]) + "\n"
    return words[1].replace("\\n", "\n")


def filter_of(words: Sequence[str]) -> Callable[[list[str]], list[str]]:
    """Return what a command at the end of a pipe does with lines."""
    match words:
        case ["head", count]:
            return lambda lines: lines[: abs(int(count))]
        case ["tail", count]:
            return lambda lines: lines[-abs(int(count)) :]
        case ["grep", "-v", pattern]:
            return lambda lines: [line for line in lines if not re.search(pattern, line)]
        case ["grep", "-E", pattern] | ["grep", pattern]:
            return lambda lines: [line for line in lines if re.search(pattern, line)]
        case ["sort"]:
            return sorted
    raise ShellError(f"the shell of the handbook does not know the filter {shlex.join(words)!r}")


def run_program(path: str, arguments: Sequence[str]) -> int:
    """Run a Python program of the reader as `python` does; return its exit status."""
    source = Path(path).read_text(encoding="utf-8")
    with patch.object(sys, "argv", [path, *arguments]):
        code = compile(source, path, "exec")
        try:
            exec(code, {"__name__": "__main__", "__file__": path})
        except KeyboardInterrupt:
            return 130
        except Exception as error:  # noqa: BLE001 - an interpreter prints whatever a program raises
            print("".join(traceback.format_exception_only(error)).strip(), file=sys.stderr)
            return 1
    return 0


def _list(*arguments: str) -> None:
    paths = [one for one in arguments if not one.startswith("-")] or ["."]
    for path in paths:
        for name in sorted(os.listdir(path)):  # noqa: PTH208 - names, as `ls` prints them
            print(name)


def _make(*names: str) -> None:
    for name in names:
        if name != "-p":
            Path(name).mkdir(parents=True)


def _remove(*arguments: str) -> None:
    for path in arguments:
        if not path.startswith("-"):
            shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()


def _fetch(*arguments: str) -> None:
    with urllib.request.urlopen(arguments[-1]) as answer:
        print(answer.read().decode().rstrip("\n"))


BUILTINS: Final[dict[str, Callable[..., Any]]] = {
    "cat": lambda path: print(Path(path).read_text(encoding="utf-8").rstrip("\n")),
    "curl": _fetch,
    "ls": _list,
    "mkdir": _make,
    "mv": lambda path, to: Path(path).rename(to),
    "rm": _remove,
}
"""Commands that the shell itself carries out, as programs of the host."""
