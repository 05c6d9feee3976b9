"""Who may import whom, and what pure code may not do.

`adapters` import `transports`, `transports` import `core`, `core` imports what does no I/O. Pure code has no clock, no
entropy, no files, no threads, no environment, no log and no state of its own outside its machines: the same inputs give
the same effects, here, in the simulator, and on a Spark worker.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.tree import LAYERS, ROOT, layer_packages, name, python_files

PURE = ("core", "transports")
# fmt: off
PURE_STDLIB = frozenset({
    "__future__", "abc", "array", "binascii", "bisect", "collections", "contextlib", "copy", "enum", "functools",
    "heapq", "inspect", "ipaddress", "itertools", "json", "math", "operator", "re", "string", "struct", "types",
    "typing", "zlib",
})
# fmt: on
"""What pure code may import of the standard library. A new name here is a decision, not a convenience."""
PURE_THIRD_PARTY = frozenset({"attrs", "statemachine"})
IMPURE_BUILTINS = frozenset(
    {"__import__", "breakpoint", "compile", "eval", "exec", "hash", "id", "input", "open", "print"}
)
"""`hash` and `id` differ from process to process: what they order or choose cannot be replayed."""
MUTABLE_TYPES = frozenset({"Counter", "OrderedDict", "bytearray", "defaultdict", "deque", "dict", "list", "set"})

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[str]:
    """Full names of the modules that the module imports, at any depth of its code."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module="stablecast", names=aliases):
                yield from (f"stablecast.{alias.name}" for alias in aliases)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom():
                yield "(relative import)"


def impurities(tree: ast.Module) -> Iterator[str]:
    """What makes the module depend on more than its inputs, imports aside."""
    for node in ast.walk(tree):
        match node:
            case ast.Global(names=names):
                yield f"line {node.lineno}: global {', '.join(names)}"
            case ast.Call(func=ast.Name(id=called)) if called in IMPURE_BUILTINS:
                yield f"line {node.lineno}: {called}()"
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=variable)], value=value) if _mutable(value):
                yield from _lower_case(variable, statement)
            case ast.AnnAssign(target=ast.Name(id=variable), value=ast.expr() as value) if _mutable(value):
                yield from _lower_case(variable, statement)


def _mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in MUTABLE_TYPES
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _lower_case(variable: str, statement: ast.stmt) -> Iterator[str]:
    """Tables are constants and named so; `__all__` is the language's."""
    if variable != variable.upper() and not variable.startswith("__"):
        yield f"line {statement.lineno}: mutable module variable {variable}"


def _allowed(module: str, layer: str, packages: dict[str, str]) -> bool:
    top, _, rest = module.partition(".")
    if top == "stablecast":
        target = packages.get(rest.partition(".")[0])
        return target is not None and LAYERS.index(target) <= LAYERS.index(layer)
    if top == "tests":
        return False
    return layer not in PURE or top in PURE_STDLIB or top in PURE_THIRD_PARTY


def wrong_imports(source: str, layer: str, packages: dict[str, str]) -> list[str]:
    """The imports of a module in `layer` that its layer does not permit."""
    return [module for module in imports(ast.parse(source)) if not _allowed(module, layer, packages)]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_inwards(layer: str) -> None:
    packages = layer_packages()
    files = python_files(layer)
    wrong = [f"{name(path)}: {module}" for path in files for module in wrong_imports(_read(path), layer, packages)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layer", PURE)
def test_pure_code_is_pure(layer: str) -> None:
    files = python_files(layer)
    impure = [f"{name(path)}, {found}" for path in files for found in impurities(ast.parse(_read(path)))]
    assert not impure, "\n".join(impure)


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("core", "import time"),
        ("core", "from os import environ"),
        ("core", "import collections, socket"),
        ("core", "from . import serial"),
        ("core", "from stablecast.wire import lbmr"),
        ("core", "from stablecast import journal"),
        ("core", "def f():\n    import asyncio"),
        ("transports", "from stablecast.journal import Journal"),
        ("transports", "import zstandard"),
        ("adapters", "from tests.support import tree"),
        ("adapters", "import stablecast.unheard_of"),
    ],
)
def test_a_wrong_import_is_found(layer: str, line: str) -> None:
    packages = {"core": "core", "wire": "transports", "journal": "adapters"}
    assert len(wrong_imports(line, layer, packages)) == 1


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("core", "from collections.abc import Iterator"),
        ("core", "import attrs"),
        ("transports", "from stablecast.core.serial import wire"),
        ("adapters", "import asyncio, stablecast.wire.lbmr"),
    ],
)
def test_a_right_import_is_let_through(layer: str, line: str) -> None:
    packages = {"core": "core", "wire": "transports", "journal": "adapters"}
    assert wrong_imports(line, layer, packages) == []


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    global x",
        "cache = {}",
        "cache = dict()",
        "seen: set[int] = {1}",
        "def f(x):\n    return hash(x)",
        "print('hello')",
    ],
)
def test_an_impurity_is_found(source: str) -> None:
    assert len(list(impurities(ast.parse(source)))) == 1


def test_constants_are_no_impurities() -> None:
    assert list(impurities(ast.parse("TABLE = {}\n_TEXTS: dict[int, str] = {1: 'a'}\n__all__ = ['f']"))) == []


def test_the_linter_bans_nothing_that_pure_code_may_import() -> None:
    """Two lists of one rule: the editor's ban list and the allow list above."""
    banned = PYPROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert not (PURE_STDLIB | PURE_THIRD_PARTY) & banned.keys()


def test_third_party_imports_are_declared() -> None:
    """What an adapter imports must be in a dependency list, or the next clean environment breaks."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {_normal(re.split(r"[^\w.-]", entry, maxsplit=1)[0]) for entries in lists for entry in entries}
    distributions = packages_distributions()
    missing = {
        f"{name(path)}: {module}"
        for path in python_files(*LAYERS, "tests", "examples")
        for module in (full.partition(".")[0] for full in imports(ast.parse(_read(path))))
        if module not in sys.stdlib_module_names and module not in {"stablecast", "tests", "hatch_build"}
        if not declared & {_normal(distribution) for distribution in distributions.get(module, [module])}
    }
    assert not missing, "\n".join(sorted(missing))


def _normal(distribution: str) -> str:
    """The name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
