"""The imports of each room, and the purity of core and transports.

`adapters` import `transports`, `transports` import `core`, `core` imports what does no I/O. Pure code has no clock, no
entropy, no files, no threads, no environment, no log and no state of its own outside its machines: the same inputs give
the same effects, here, in the simulator, and on a Spark worker.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.tree import LAYERS, ROOT, layer_packages, name, python_files

PURE = ("core", "transports")
# fmt: off
PURE_STDLIB = frozenset({
    "__future__", "abc", "array", "binascii", "bisect", "collections", "contextlib", "copy", "enum", "functools",
    "hashlib", "heapq", "importlib", "inspect", "ipaddress", "itertools", "json", "math", "operator", "re", "string",
    "struct", "types", "typing", "zlib",
})
# fmt: on
"""The modules of the standard library that pure code may import. A new name here is a decision, not a convenience."""
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
    """Yield the places where the module depends on more than its inputs, imports aside."""
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
    if top in {"tests", "tools"}:
        return False
    return layer not in PURE or top in PURE_STDLIB or top in PURE_THIRD_PARTY


def wrong_imports(imported: Iterable[str], layer: str, packages: dict[str, str]) -> list[str]:
    """The imports of a module in `layer` that its layer does not permit."""
    return [module for module in imported if not _allowed(module, layer, packages)]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _imports(path: Path) -> tuple[str, ...]:
    return tuple(imports(ast.parse(_read(path))))


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_inwards(layer: str) -> None:
    packages = layer_packages()
    files = python_files(layer)
    wrong = [f"{name(path)}: {module}" for path in files for module in wrong_imports(_imports(path), layer, packages)]
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
        ("transports", "from stablecast.store.journal import Journal"),
        ("transports", "import zstandard"),
        ("adapters", "from tests.support import tree"),
        ("adapters", "import stablecast.unheard_of"),
    ],
)
def test_a_wrong_import_is_found(layer: str, line: str) -> None:
    packages = {"core": "core", "wire": "transports", "journal": "adapters"}
    assert len(wrong_imports(imports(ast.parse(line)), layer, packages)) == 1


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("core", "from collections.abc import Iterator"),
        ("core", "import attrs"),
        ("transports", "from stablecast.core.machine.serial import wire"),
        ("adapters", "import asyncio, stablecast.wire.lbmr"),
    ],
)
def test_a_right_import_is_let_through(layer: str, line: str) -> None:
    packages = {"core": "core", "wire": "transports", "journal": "adapters"}
    assert wrong_imports(imports(ast.parse(line)), layer, packages) == []


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
    """An adapter's imports must be in a dependency list, or the next clean environment breaks."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {_normal(re.split(r"[^\w.-]", entry, maxsplit=1)[0]) for entries in lists for entry in entries}
    distributions = packages_distributions()
    missing = {
        f"{name(path)}: {module}"
        for path in python_files(*LAYERS, "tests", "tools", "examples")
        for module in (full.partition(".")[0] for full in _imports(path))
        if module not in sys.stdlib_module_names and module not in {"stablecast", "tests", "tools"}
        if not path.with_name(f"{module}.py").exists()  # An example imports the file beside it.
        if not declared & {_normal(distribution) for distribution in distributions.get(module, [module])}
    }
    assert not missing, "\n".join(sorted(missing))


def _normal(distribution: str) -> str:
    """The name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


# ---------------------------------------------------------------------------------------------------------------- rooms

# fmt: off
ROOMS: Mapping[str, str] = {
    "core.errors": "",
    "core.machine": "core.errors",
    "core.protocol": "core.errors core.machine",
    "core.registration": "core.errors core.machine core.protocol",
    "core.sharing": "core.machine",
    "core.subscription": "core.errors core.machine core.protocol core.receiver",
    "core.source": "core.errors core.machine core.protocol core.registration",
    "core.receiver": "core.errors core.machine core.protocol core.registration",
    "core.store": "core.errors core.machine core.protocol",
    "core": "core.errors core.protocol core.source core.receiver core.store",
    "transports": "",
    "transports.wire": "core",
    "transports.codec": "core transports.wire",
    "transports.reliable": "core transports.wire transports.codec",
    "transports.resolution": "core transports.wire transports.codec",
    "transports.resolution.udp": "core transports.wire transports.codec transports.resolution",
    "transports.resolution.srs":
        "core transports.wire transports.codec transports.resolution transports.resolution.udp",
    "transports.routing":
        "core transports transports.wire transports.codec transports.reliable transports.resolution "
        "transports.resolution.udp",
    "runtime.machine": "",
    "text": "core runtime.machine",
    "runtime": "core transports text runtime.machine",
    "config": "core transports text runtime runtime.machine",
    "resolver": "core transports text runtime runtime.machine config",
    "evidence": "",
    "evidence.rules": "core text runtime.machine",
    "evidence.trace": "core transports text runtime runtime.machine evidence.rules",
    "evidence.capture": "core transports text runtime runtime.machine evidence.rules evidence.trace",
    "evidence.spark": "core transports text runtime runtime.machine evidence.rules evidence.trace evidence.capture",
    "evidence.verification":
        "core text runtime runtime.machine evidence.rules evidence.trace evidence.capture evidence.spark",
    "evidence.incident": "core transports text runtime.machine evidence.trace evidence.capture",
    "evidence.watch": (
        "core text runtime runtime.machine evidence.rules evidence.trace evidence.capture evidence.spark"
    ),
    "evidence.whatif": "core text runtime runtime.machine config evidence.trace evidence.spark",
    "client": "core transports text runtime runtime.machine config resolver evidence.trace",
    "router": "core transports text runtime runtime.machine config resolver client",
    "typed": "core transports client",
    "faststream": "core resolver client store testing",
    "archive": "core text runtime runtime.machine config client",
    "spark": "core text runtime runtime.machine config client sync archive",
    "sync": "core transports runtime.machine client",
    "store.journal": "core text runtime.machine",
    "store": "core transports text runtime runtime.machine config resolver evidence.trace client store.journal",
    "ops": "",
    "ops.monitor": "core text runtime runtime.machine store",
    "ops.operations": "core transports text runtime runtime.machine archive store store.journal ops.monitor",
    "ops.fleet": "core text runtime.machine ops.monitor ops.operations",
    "ops.router": "core text runtime runtime.machine config router ops.monitor",
    "lab": "",
    "lab.schedules": "core text",
    "lab.quorum_judge": "core",
    "lab.sim":
        "core lab.schedules lab.quorum_judge transports text runtime runtime.machine evidence.rules evidence.trace "
        "client store store.journal",
    "lab.world": "core config runtime runtime.machine resolver cli",
    "lab.whole":
        "core lab.schedules text runtime runtime.machine client sync store store.journal evidence.trace lab.world",
    "lab.model": "core transports text evidence.trace",
    "lab.prove": "core text config lab.model lab.proof lab.quorum_judge",
    "lab.proof": "core text lab.model",
    "lab.demo": "core text runtime runtime.machine client evidence.trace",
    "testing": "core config client evidence.trace store.journal lab",
    "cli":
        "core transports text runtime runtime.machine config resolver client store evidence lab ops testing archive "
        "router",
}
# fmt: on
"""The rooms that each room may import, itself aside. A package without a line belongs to the room above it.

`core`, `transports`, `evidence`, `lab` and `ops` on the right permit all of their rooms.
"""
KNOWN_CYCLES: list[list[str]] = []
"""Files that import each other; the list may only shrink."""
WHOLE = frozenset({"core", "transports", "evidence", "lab", "ops"})


def room_of(module: str) -> str:
    """The longest line of `ROOMS` that the module stands under; the module without `stablecast.`."""
    parts = module.split(".")
    return next(room for end in range(len(parts), 0, -1) if (room := ".".join(parts[:end])) in ROOMS)


def _modules() -> dict[str, Path]:
    found = {}
    for path in python_files(*LAYERS):
        parts = path.relative_to(ROOT).with_suffix("").parts[2:]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _graph() -> dict[str, set[str]]:
    """Imports among our own modules, at any depth of their code."""
    modules = _modules()
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        wanted = set()
        for node in ast.walk(ast.parse(_read(path))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name.removeprefix("stablecast.") for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stablecast."):
                base = str(node.module).removeprefix("stablecast.")
                names = {f"{base}.{alias.name}" for alias in node.names}
                wanted |= {name if name in modules else base for name in names}
        graph[module] = (wanted & modules.keys()) - {module}
    return graph


def arrows_up(graph: Mapping[str, Collection[str]]) -> list[str]:
    """The imports that the table of rooms does not permit."""
    wrong = []
    for module, imported in graph.items():
        room = room_of(module)
        allowed = ROOMS[room].split()
        for other in imported:
            target = room_of(other)
            whole = target.partition(".")[0]
            if target != room and target not in allowed and not (whole in WHOLE and whole in allowed):
                wrong.append(f"{module} imports {other}: {room} may not import {target}")
    return sorted(wrong)


def cycles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others."""
    reached: dict[str, set[str]] = {}
    for module in graph:
        seen: set[str] = set()
        waiting = list(graph[module])
        while waiting:
            if (other := waiting.pop()) not in seen:
                seen.add(other)
                waiting += graph[other]
        reached[module] = seen
    groups = {tuple(sorted(m for m in seen if module in reached[m])) for module, seen in reached.items()}
    return sorted(list(group) for group in groups if group)


def test_every_package_stands_in_the_table_of_rooms() -> None:
    assert {room_of(module) for module in _modules()} == ROOMS.keys()


def test_rooms_import_only_what_the_table_permits() -> None:
    assert arrows_up(_graph()) == []


def test_no_files_import_each_other() -> None:
    assert cycles(_graph()) == KNOWN_CYCLES


def test_an_arrow_up_and_a_cycle_are_found() -> None:
    graph = {"runtime.driver": ["client.context"], "client.context": ["runtime.driver"], "text.counts": []}
    assert arrows_up(graph) == ["runtime.driver imports client.context: runtime may not import client"]
    assert cycles(graph) == [["client.context", "runtime.driver"]]
