"""Type checkers over code as users write it: the examples, `users_code.py`, and the programs of spec/habits.md.

`python -m tests.examples.checked_types` runs `mypy --strict` and basedpyright for each Python, the latter in the mode
`strict` of pyright.
"""

import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""The Pythons for which users' code is checked, the oldest and the newest one at the ends."""

LAYERS: Final = ("core", "transports", "adapters")
HABITS: Final = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
HEAD: Final = """\
from datetime import UTC, datetime, timedelta

import attrs

from stablecast.client import Context, Message, Redelivery, Source
from stablecast.typed import Topic


@attrs.frozen
class Order:
    item: str
    count: int


def process(message: Message) -> None: ...
"""


NAMES: Final = "context: Context, again: Context, source: Source, stores: list[str]"
"""The names that the programs of the page use."""


def users_files(folder: Path) -> list[Path]:
    """Write the programs of spec/habits.md as one module, and return all files to check."""
    programs = HABITS.findall((ROOT / "spec" / "habits.md").read_text(encoding="utf-8"))
    habits = folder / "habits.py"
    functions = [
        f"\n\nasync def habit{number}({NAMES}) -> None:\n{textwrap.indent(program, '    ')}"
        for number, program in enumerate(programs)
    ]
    habits.write_text(HEAD + "".join(functions), encoding="utf-8")
    # An example of a folder of its own imports the files beside it, which users see there.
    return [*sorted((ROOT / "examples").glob("*.py")), ROOT / "tests" / "examples" / "users_code.py", habits]


Checker = Callable[[Sequence[Path], str, Path], str]
"""Checks files for a version of Python, with a folder for its own files; returns what it finds."""


def mypy(files: Sequence[Path], version: str, folder: Path) -> str:
    """Return what `mypy --strict` finds, empty for nothing."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--python-version", version]
    return _found([*command, "--cache-dir", str(folder / "mypy"), *map(str, files)])


def pyright(files: Sequence[Path], version: str, folder: Path) -> str:
    """Return what pyright finds in its mode `strict`, empty for nothing."""
    settings = {
        "include": [str(file) for file in files],
        "extraPaths": [str(ROOT / layer) for layer in LAYERS],
        "pythonVersion": version,
        "typeCheckingMode": "strict",
        "reportMatchNotExhaustive": False,  # Programs match the events that they need.
    }
    place = folder / "pyrightconfig.json"
    place.write_text(json.dumps(settings), encoding="utf-8")
    return _found([sys.executable, "-m", "basedpyright", "-p", str(place), "--pythonpath", sys.executable])


def _found(command: Sequence[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 and not done.stderr else f"{done.stdout}{done.stderr}"


def main() -> int:
    """Run both checkers for each Python, and print what they find."""
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = users_files(folder)
        for version in VERSIONS:
            for checker in (mypy, pyright):
                found = checker(files, version, folder)
                wrong += bool(found)
                print(f"{checker.__name__}, Python {version}: {found or f'nothing in {len(files)} files'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
