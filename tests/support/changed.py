"""Find the test files whose rooms changed: `python -m tests.support.changed` prints those with tests outside the gate.

A test file belongs to a change if it lies in the folder of the changed room, or if it imports a changed file, itself or
through helpers of the tests and tools. `FOLLOWS` has the others. Of the killers of planted faults 96 % are found so.

Changes are counted since this branch left the main branch, or since the last tag. Without either everything is printed.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.tiers import REST, has
from tests.support.tree import LAYERS, ROOT, name, python_files

MAIN: Final = ("origin/HEAD", "origin/main", "main")

FOLLOWS: Final[Mapping[str, tuple[str, ...]]] = {
    ".github/": ("tests/packaging", "tests/tools/release"),
    "adapters/stablecast/client/": ("tests/e2e", "tests/examples", "tests/tools/torture"),
    "adapters/stablecast/lab/demo/": ("tests/e2e",),
    "adapters/stablecast/lab/model/": ("tests/models",),
    "adapters/stablecast/lab/proof/": ("tests/models",),
    "adapters/stablecast/resolver/": ("tests/e2e",),
    "adapters/stablecast/runtime/": ("tests/e2e", "tests/adapters/cli"),
    "adapters/stablecast/store/": ("tests/e2e", "tests/adapters/cli", "tests/tools/torture"),
    "core/": ("tests/models", "tests/adapters/lab/proof", "tests/e2e", "tests/tools/torture"),
    "examples/": ("tests/examples", "tests/e2e"),
    "handbook/": ("tests/tools/site",),
    "packaging/": ("tests/packaging",),
    "pyproject.toml": ("tests/packaging", "tests/tools/release"),
    "README.md": ("tests/examples",),
    "tla/": ("tests/models", "tests/adapters/lab/proof"),
    "tools/": ("tests/tools",),
    "transports/": ("tests/models", "tests/e2e"),
}
"""The folders of tests that use a file as text, or in a process of its own, by the beginning of its name."""


def changed() -> list[str] | None:
    """Return the files that changed since the base, or None if there is no base."""
    base = _base()
    return None if base is None else _git("diff", "--name-only", base).splitlines()


def _base() -> str | None:
    head = _git("rev-parse", "HEAD")
    left = (_git("merge-base", main, "HEAD") for main in MAIN)
    return next((one for one in left if one and one != head), _git("describe", "--tags", "--abbrev=0")) or None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def selected(files: list[str] | None) -> list[str]:
    """Return the test files that belong to these changed files; those of changed rooms come first."""
    tests = [path for path in python_files("tests") if path.name.startswith("test_")]
    if files is None:
        return [name(path) for path in tests]
    folders = {folder for file in files if (folder := room(file))}
    follow = {start: them for start, them in FOLLOWS.items() if any(file.startswith(start) for file in files)}
    followers = {folder for them in follow.values() for folder in them}
    near = [name(path) for path in tests if name(path).startswith(tuple(f"{folder}/" for folder in folders))]
    near += [name(path) for path in tests if name(path) in files]
    importers = [name(path) for path in tests if set(files) & direct(path)]
    far = [name(path) for path in tests if name(path).startswith(tuple(f"{folder}/" for folder in followers))]
    return list(dict.fromkeys([*near, *importers, *far]))


def room(file: str) -> str:
    """Return the folder of tests that mirrors the folder of a file of the product, or an empty string."""
    layer, _, rest = file.partition("/stablecast/")
    if layer not in LAYERS or not rest:
        return ""
    folder = Path("tests", *(() if layer != "adapters" else (layer,)), rest).parent
    mirrors = (one for one in (folder, *folder.parents) if one.as_posix() not in (".", "tests", "tests/adapters"))
    return next((one.as_posix() for one in mirrors if (ROOT / one).is_dir()), "")


def direct(test: Path) -> set[str]:
    """Return the files of this tree that a test file imports, itself or through helpers of the tests."""
    found, new = {name(test)}, [test]
    while new:
        for path in _imports(new.pop()):
            if name(path) not in found:
                found.add(name(path))
                if name(path).startswith(("tests/", "tools/")):
                    new.append(path)
    return found


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(found for module in _modules(path) if (found := _file(module))))


def _modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _file(module: str) -> Path | None:
    parts = module.split(".")
    roots = {"tests": (ROOT,), "tools": (ROOT,), "stablecast": tuple(ROOT / layer for layer in LAYERS)}.get(
        parts[0], ()
    )
    stems = [root.joinpath(*parts) for root in roots]
    places = [*(stem.with_suffix(".py") for stem in stems), *(stem / "__init__.py" for stem in stems)]
    return next((place for place in places if place.exists()), None)


def main(arguments: list[str]) -> int:
    """Print the files that have tests outside the gate; `in FOLDER...` and `but FOLDER...` choose by folder."""
    where, *folders = arguments or ["but"]
    starts = tuple(f"{folder}/" for folder in folders)
    found = [file for file in selected(changed()) if has(file, REST)]
    print(*(file for file in found if file.startswith(starts) is (where == "in")), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
