"""The shipped programs take clocks, entropy, files, sockets, threads and signals from `machine` only.

A simulated world replaces what that package calls. A program that holds functions of the system in another way (in
default arguments, in classes) would leave the world without a trace, and its runs could not be repeated.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.support.tree import name, python_files

SEAM: Final = "adapters/stablecast/runtime/machine/"

# fmt: off
EXEMPT: Final[Mapping[str, str]] = {
    SEAM: "the seam itself",
    "adapters/stablecast/evidence/capture/": "judges of recorded packets, which no daemon runs",
    "adapters/stablecast/evidence/incident/": "judges of recorded traces, which no daemon runs",
    "adapters/stablecast/evidence/spark/": "jobs on a cluster of real machines",
    "adapters/stablecast/evidence/verification/": "judges of recorded traces, which no daemon runs",
    "adapters/stablecast/evidence/watch/": "judges of traces that other processes write, which no daemon runs",
    "adapters/stablecast/evidence/whatif/": "judges of recorded traces, which no daemon runs",
    "adapters/stablecast/evidence/trace/tools/": "commands for people who read recorded traces",
    "adapters/stablecast/evidence/trace/reports.py": "writes a table for people, by a library that opens the file",
    "adapters/stablecast/archive/": "writes tables for people, by a library that opens the files",
    "adapters/stablecast/lab/": "builds worlds, and runs programs of the real machine",
    "adapters/stablecast/faststream/tested_broker.py": "runs stores for a test, in directories of the real machine",
    "adapters/stablecast/runtime/child_programs.py": "starts programs of the real machine, for people",
    "adapters/stablecast/testing/": "runs worlds from outside, in processes of the real machine",
    "adapters/stablecast/ops/fleet/": "commands for operators, each a process of its own",
    "adapters/stablecast/ops/operations/": "commands for operators, each a process of its own",
    "adapters/stablecast/ops/monitor/directory_jobs.py": "starts a process, which a simulated world refuses",
    "adapters/stablecast/cli/cluster.py": "starts programs of the real machine, for people",
    "adapters/stablecast/cli/fleet.py": "commands for operators, each a process of its own",
    "adapters/stablecast/cli/roll.py": "commands for operators, each a process of its own",
    "adapters/stablecast/cli/main.py": "the outermost frame of each command",
    "adapters/stablecast/cli/store_operations.py": "commands for operators, each a process of its own",
    "adapters/stablecast/cli/verify.py": "judges recorded traces, for people",
}
# fmt: on
"""Rooms and files that may use the operating system, each with its reason. New files are not exempt."""

# fmt: off
FORBIDDEN_MODULES: Final = frozenset({
    "_thread", "atexit", "builtins", "ctypes", "fcntl", "fileinput", "getpass", "glob", "mmap",
    "multiprocessing", "posix", "pwd", "random", "resource", "sched", "secrets", "select", "selectors",
    "shelve", "signal", "sqlite3", "subprocess", "tempfile", "threading", "uuid", "uvloop",
})
# fmt: on
"""Modules that reach the operating system, or hide how they do."""

PURE_NAMES: Final[Mapping[str, str]] = {
    "asyncio": r"(?!to_thread$|run$|Runner$|new_event_loop$|create_subprocess_|open_unix_|start_unix_).*",
    "concurrent": r"futures",
    "concurrent.futures": r"Future",
    "io": r"BytesIO|StringIO",
    "os": r"O_[A-Z]+|PathLike|__file__|fsdecode|fsencode|sep|strerror|sysconf",
    "platform": r"machine|python_version|system",
    "queue": r"Empty|Full",
    "shutil": r"copyfileobj",
    "socket": r"[A-Z][A-Z0-9_]+|inet_(aton|ntoa|pton|ntop)|[hn]to[hn][sl]",
    "sys": r"(?!stdin$|stdout$|stderr$|argv$|exit$|__std).*",
    "urllib": r"parse",
    "time": r"gmtime|localtime|strftime|strptime|struct_time",
}
"""Names of other modules that are constants, types and functions of their arguments only."""

# fmt: off
METHODS: Final = frozenset({
    "add_signal_handler", "chmod", "cwd", "exists", "expanduser", "glob", "hardlink_to", "home", "is_dir",
    "is_file", "is_symlink", "iterdir", "lchmod", "lstat", "mkdir", "read_bytes", "read_text", "readlink",
    "rglob", "rmdir", "run_in_executor", "samefile", "stat", "symlink_to", "touch", "unlink", "write_bytes",
    "write_text",
})
# fmt: on
"""Methods of `pathlib.Path` and of event loops that reach the operating system, on whatever object."""

MODE: Final = re.compile(r"[rwax][bt+]*")
OBJECTS: Final = frozenset({"clock", "entropy", "files", "network", "threads", "process"})


class SeamReader(ast.NodeVisitor):
    """Collects the uses of the operating system in a source, as `line N: use`."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._modules: dict[str, str] = {}
        self._depth = 0

    def _add(self, node: ast.expr | ast.stmt, use: str) -> None:
        self.found.append(f"line {node.lineno}: {use}")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] in FORBIDDEN_MODULES:
                self._add(node, f"import {alias.name}")
            self._modules[alias.asname or alias.name.partition(".")[0]] = alias.name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            if module.partition(".")[0] in FORBIDDEN_MODULES or not _is_pure(module, alias.name):
                self._add(node, f"from {module} import {alias.name}")
            elif module.startswith("stablecast.runtime.machine"):
                # A reader looks for `machine` to find each contact with the system.
                if alias.name in OBJECTS or module != "stablecast.runtime.machine":
                    self._add(node, f"from {module} import {alias.name}")
            elif module == "concurrent.futures":
                self._modules[alias.asname or alias.name] = "concurrent.futures.Future"

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        # Defaults and decorators run when the function is defined, its body when it is called.
        for outside in (node.args, *getattr(node, "decorator_list", ())):
            self.visit(outside)
        self._depth += 1
        for inside in [node.body] if isinstance(node, ast.Lambda) else node.body:
            self.visit(inside)
        self._depth -= 1

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef  # noqa: N815

    def visit_Attribute(self, node: ast.Attribute) -> None:
        match node.value:
            case ast.Name(id="machine") if node.attr in OBJECTS and not self._depth:
                self._add(node, f"machine.{node.attr} when the module is loaded")
            case ast.Name(id="machine"):
                pass
            case ast.Name(id=known) if known in self._modules and not _is_pure(self._modules[known], node.attr):
                self._add(node, f"{self._modules[known]}.{node.attr}")
            case ast.Name(id="datetime" | "date") if node.attr in {"now", "today", "utcnow"}:
                self._add(node, f"datetime.{node.attr}")
            case ast.Attribute(value=ast.Name(id="machine")):
                pass  # machine.files.exists and the like.
            case _ if node.attr in METHODS:
                self._add(node, f".{node.attr}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        given = {keyword.arg for keyword in node.keywords}
        match node.func:
            case ast.Name(id="open" | "input" | "__import__" as called):
                self._add(node, f"{called}(")
            case ast.Name(id="print") if "file" not in given:
                self._add(node, "print( without file")
            case ast.Name(id=called) if self._modules.get(called) == "concurrent.futures.Future":
                self._add(node, f"{called}(")
            case ast.Attribute(attr="open", value=value) if not _is_of_machine(value):
                if given & {"mode", "encoding", "buffering"} or any(map(_is_mode, node.args[:1])):
                    self._add(node, ".open( of a path")
            case ast.Attribute(attr="replace" | "rename" as called, value=value) if not _is_of_machine(value):
                if called == "rename" or (len(node.args) == 1 and not node.keywords):
                    self._add(node, f".{called}( of a path")
        self.generic_visit(node)


def _is_pure(module: str, attribute: str) -> bool:
    return module not in PURE_NAMES or re.fullmatch(PURE_NAMES[module], attribute) is not None


def _is_of_machine(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "machine"


def _is_mode(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and bool(MODE.fullmatch(value.value))


def direct_uses(source: str) -> list[str]:
    """Returns the uses of the operating system in a source that do not go through the seam."""
    reader = SeamReader()
    reader.visit(ast.parse(source))
    return reader.found


def _files() -> Iterator[tuple[str, str]]:
    for path in python_files("adapters"):
        if not name(path).startswith(tuple(EXEMPT)):
            yield name(path), path.read_text(encoding="utf-8")


def test_the_programs_use_the_machine_through_the_seam() -> None:
    wrong = [f"{file}, {use}" for file, source in _files() for use in direct_uses(source)]
    assert not wrong, "\n".join(wrong)


def test_each_exemption_is_needed() -> None:
    sources = {name(path): path.read_text(encoding="utf-8") for path in python_files("adapters")}
    idle = [
        exempt
        for exempt in EXEMPT
        if not any(direct_uses(source) for file, source in sources.items() if file.startswith(exempt))
    ]
    assert idle == []


@pytest.mark.parametrize(
    "source",
    [
        "import threading",
        "import mmap",
        "from secrets import randbits",
        "import time\ntime.monotonic_ns()",
        "import time as t\nnow = t.time_ns",
        "from time import monotonic",
        "import os\nos.fdatasync(3)",
        "import os\nos.environ['HOME']",
        "from os import urandom",
        "import socket\nsocket.socket()",
        "import socket\nsocket.gethostbyname('a')",
        "import asyncio\nasync def f():\n    await asyncio.to_thread(len, '')",
        "import asyncio\nasyncio.run(main())",
        "from asyncio import Runner",
        "from shutil import copy2",
        "import sys\nsys.stdout.write('a')",
        "from datetime import UTC, datetime\ndatetime.now(UTC)",
        "from concurrent.futures import ThreadPoolExecutor",
        "from concurrent.futures import Future\nFuture()",
        "from queue import Queue",
        "open('a')",
        "print('a')",
        "path.open('rb')",
        "path.open(mode='w')",
        "path.read_text(encoding='utf-8')",
        "directory.iterdir()",
        "path.rename(other)",
        "path.replace(other)",
        "loop.run_in_executor(None, f)",
        "loop.add_signal_handler(2, f)",
        "from stablecast.runtime.machine import clock",
        "from stablecast.runtime.machine.files import remove",
        "from stablecast.runtime import machine\nSTARTED = machine.clock.wall_ns()",
        "from stablecast.runtime import machine\ndef f(now=machine.clock.wall_ns):\n    pass",
    ],
)
def test_a_direct_use_is_found(source: str) -> None:
    assert len(direct_uses(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.O_RDONLY | os.O_CREAT",
        "import socket\nsocket.SOL_SOCKET, socket.inet_aton('1.2.3.4')",
        "import asyncio\nasync def f():\n    await asyncio.sleep(1)",
        "from queue import Full",
        "from shutil import copyfileobj",
        "from pathlib import Path\nPath('a').with_suffix('.b').parent.name",
        "text.replace('a', 'b')",
        "journal.open(directory)",
        "from stablecast.runtime.machine import Mapped, Socket",
        "from stablecast.runtime import machine\ndef f():\n    return machine.files.stat('a'), machine.clock.wall_ns()",
        "from stablecast.runtime import machine\nf = lambda: machine.clock.wall_ns()",
        "from stablecast.runtime import machine\ndef f(sock: machine.Socket) -> None:\n    pass",
    ],
)
def test_a_permitted_use_is_let_through(source: str) -> None:
    assert direct_uses(source) == []
