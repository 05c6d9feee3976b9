"""The programs and commands of the README and of two chapters work.

A Python block is a whole program unless `<!-- fragment -->` stands on the line before it. A program that names the
default addresses gets a store and a relay there. A program that does not end by itself runs beside the others. The
test interrupts it when the others have ended and it has printed a line.
"""

import ast
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import attrs
import pytest

from tests.support.defaults import RELAY, STORE, default_cluster
from tests.support.processes import HANG_S
from tests.support.program import Program, outcome, running
from tests.support.tree import ROOT, name

DOCUMENTS = tuple(ROOT / name for name in ("README.md", "spec/client.md", "spec/embedding.md"))
"""Documents with programs that a reader copies."""
FRAGMENT = "<!-- fragment -->"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INTERRUPTED = (0, 1, 130, -signal.SIGINT)
"""Exit statuses of a program that Ctrl-C may end with."""


@attrs.frozen
class Block:
    """A fenced block of a document. `place` is `file:line`."""

    language: str
    text: str
    place: str
    fragment: bool

    @property
    def endless(self) -> bool:
        """Return whether the program receives until it is interrupted."""
        return "async for" in self.text and "break" not in self.text


def blocks(text: str, document: str = "README.md") -> Iterator[Block]:
    for found in FENCE.finditer(text):
        before = text[: found.start()].rstrip().rsplit("\n", 1)[-1].strip()
        line = text.count("\n", 0, found.start()) + 1
        yield Block(found[1], found[2], f"{document}:{line}", before == FRAGMENT)


def shown(language: str) -> list[Block]:
    found = (block for path in DOCUMENTS for block in blocks(path.read_text(encoding="utf-8"), name(path)))
    return [block for block in found if block.language == language]


def commands(block: Block) -> list[list[str]]:
    """Return the command lines of a console block, split into words: each line after `$ `, with its continuations."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def start(block: Block, directory: Path) -> AbstractContextManager[Program]:
    return running(program=(sys.executable, "-u", "-c", block.text), directory=directory)


def run(programs: list[Block], directory: Path) -> None:
    """Run programs: the endless ones first, together with the others one by one."""
    with ExitStack() as stack:
        endless = [(block, stack.enter_context(start(block, directory))) for block in programs if block.endless]
        for block in [block for block in programs if not block.endless]:
            with start(block, directory) as program:
                _, error = program.process.communicate(timeout=HANG_S)
                assert program.process.returncode == 0, f"{block.place}: {error}"
        for block, program in endless:
            assert program.line(), f"{block.place}: printed nothing"
            program.interrupt()
            _, error = program.process.communicate(timeout=HANG_S)
            assert program.process.returncode in INTERRUPTED, f"{block.place}: {error}"


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
        status, _, error = outcome(subcommand, "--help")
        assert status == 0, f"stablecast {subcommand}: {error}"


# Tests of the parser of documents above.

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
