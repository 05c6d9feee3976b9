"""The programs and commands of the README and of two chapters work.

A Python block is a whole program unless `<!-- fragment -->` stands on the line before it. A program that names the
default addresses gets a store and a relay there. A program that does not end by itself runs beside the others and is
interrupted once they have ended and it has printed something.
"""

import ast
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.support.defaults import RELAY, STORE, default_cluster
from tests.support.program import PATH
from tests.support.tree import ROOT, name

DOCUMENTS = tuple(ROOT / name for name in ("README.md", "spec/client.md", "spec/embedding.md"))
"""Documents with programs that a reader copies."""
FRAGMENT = "<!-- fragment -->"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 30
"""How long a program may take that ends by itself."""
INTERRUPTED = (0, 1, 130, -signal.SIGINT)
"""Exit statuses of a program that Ctrl-C ended."""


@attrs.frozen
class Block:
    """A fenced block: its language, its text, its place (`file:line`), and whether it is a fragment."""

    language: str
    text: str
    place: str
    fragment: bool

    @property
    def endless(self) -> bool:
        """Whether the program receives until it is interrupted."""
        return "async for" in self.text and "break" not in self.text


def blocks(text: str, document: str = "README.md") -> Iterator[Block]:
    """The fenced blocks of a document, in order."""
    for found in FENCE.finditer(text):
        before = text[: found.start()].rstrip().rsplit("\n", 1)[-1].strip()
        line = text.count("\n", 0, found.start()) + 1
        yield Block(found[1], found[2], f"{document}:{line}", before == FRAGMENT)


def shown(language: str) -> list[Block]:
    """The blocks of one language in the documents."""
    found = (block for path in DOCUMENTS for block in blocks(path.read_text(encoding="utf-8"), name(path)))
    return [block for block in found if block.language == language]


def commands(block: Block) -> list[list[str]]:
    """The command lines of a console block: what follows `$ `, continued lines joined, pipes cut."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def start(program: Block, directory: Path) -> "subprocess.Popen[str]":
    """Run a program in a directory."""
    return subprocess.Popen(
        [sys.executable, "-c", program.text],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": PATH, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(programs: list[Block], directory: Path) -> None:
    """Run programs: the endless ones first, together with the others one by one."""
    endless = [(program, start(program, directory)) for program in programs if program.endless]
    try:
        for program in [program for program in programs if not program.endless]:
            with start(program, directory) as process:
                _, error = process.communicate(timeout=SECONDS)
                assert process.returncode == 0, f"{program.place}: {error}"
        for program, process in endless:
            assert process.stdout is not None
            assert process.stdout.readline(), f"{program.place}: printed nothing"
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=SECONDS)
            assert process.returncode in INTERRUPTED, f"{program.place}: {error}"
    finally:
        for _, process in endless:
            process.kill()
            process.communicate()


def test_the_python_programs_run(tmp_path: Path) -> None:
    programs = [block for block in shown("python") if not block.fragment]
    alone = [program for program in programs if STORE not in program.text and RELAY not in program.text]
    run(alone, tmp_path)
    together = [program for program in programs if program not in alone]
    if together:
        with default_cluster(tmp_path):
            run(together, tmp_path)


def test_the_fragments_are_python() -> None:
    for block in shown("python"):
        compile(block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_commands_exist() -> None:
    """Each `stablecast ...` names a command that has help, each `make ...` a target."""
    targets = re.findall(r"^([.\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named: set[str] = set()
    for block in shown("console"):
        for command in commands(block):
            match command:
                case ["make", *arguments]:
                    wanted = [argument for argument in arguments if "=" not in argument]
                    assert set(wanted) <= set(targets), f"{block.place}: {command}"
                case [program, subcommand, *_] if Path(program).name == "stablecast" and subcommand[0] != "-":
                    named.add(subcommand)
                case _:
                    pass
    for subcommand in sorted(named):
        answer = subprocess.run(
            [sys.executable, "-m", "stablecast.cli.main", subcommand, "--help"],
            env={**os.environ, "PYTHONPATH": PATH},
            capture_output=True,
            check=False,
            text=True,
        )
        assert answer.returncode == 0, f"stablecast {subcommand}: {answer.stderr}"


# The test's own reading of documents.

SAMPLE = """\
Text.

```python
print("whole")
```

<!-- fragment -->
```python
await source.send(b"x")
```

```console
$ make test  # everything
output
$ stablecast send orders \\
    --store 127.0.0.1:14567
```
"""


def test_blocks_are_found() -> None:
    whole, fragment, console = blocks(SAMPLE)
    assert (whole.language, whole.text, whole.place, whole.fragment) == (
        "python",
        'print("whole")\n',
        "README.md:3",
        False,
    )
    assert (fragment.fragment, fragment.place) == (True, "README.md:8")
    assert commands(console) == [["make", "test"], ["stablecast", "send", "orders", "--store", "127.0.0.1:14567"]]


def test_programs_that_fail_are_named(tmp_path: Path) -> None:
    run([Block("python", "print(1)", "README.md:1", fragment=False)], tmp_path)
    with pytest.raises(AssertionError, match=r"README\.md:7: .*\n?.*"):
        run([Block("python", "raise SystemExit('no')", "README.md:7", fragment=False)], tmp_path)


def test_an_endless_program_is_interrupted(tmp_path: Path) -> None:
    text = "import time\nprint('async for')\ntime.sleep(3600)"
    run([Block("python", text, "README.md:1", fragment=False)], tmp_path)
