"""List what never runs in the core while graphs are explored, each with its reason: functions, and branches of others.

The reasons are in `tla/uncovered.toml`: sentences, each with the functions that it is about. A function that runs in
part has the number of its branches that were never taken. Beside the graphs, the command line runs the composed system
in its short form.
"""

import ast
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from stablecast import core
from stablecast.lab.model import equal
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.catalog import Configuration

REASONS: Final = "uncovered.toml"
SHORT: Final = (
    "ProxyElection/graph_quorum",
    "ProxyElection/graph_suspect",
    "ReceiverVotes/graph_small",
    "ReceiverVotes/graph_unmarked",
    "Recovery/graph_close",
    "Recovery/graph_maximum",
    "Recovery/graph_slow",
    "Recovery/graph_small",
    "Refill/graph_small",
    "Registration/graph_context",
    "Registration/graph_small",
    "ResolutionPhases/graph_enough",
    "ResolutionPhases/graph_initial",
    "ResolutionPhases/graph_safe",
    "ResolutionPhases/graph_small",
    "ResolutionPhases/graph_sustaining",
    "Rpp/graph_delay",
    "Rpp/graph_lives",
    "Rpp/graph_small",
    "SrsLifetime/graph_loss",
    "SrsLifetime/graph_small",
    "Stability/graph_groups",
    "Stability/graph_hole",
    "Stability/graph_lives",
    "Stability/graph_majority",
    "Stability/graph_rivals",
    "Stability/graph_small",
    "Subscription/graph_back",
    "Subscription/graph_small",
    "WorkSharing/graph_die",
    "WorkSharing/graph_moves",
)
"""Graphs that are explored if none is named: some of each model, in a few minutes of CPU time."""
Explored = Callable[[], Iterable[object]]
"""Explores something part by part."""
CORE: Final = Path(next(iter(core.__path__))).resolve()


@attrs.frozen
class Uncovered:
    """Hold what never ran, by function.

    Attributes:
        functions: The number of functions of the core.
        branches: The number of their branches.
        unused: The functions that never ran, with their reason.
        partial: Of the others, those with branches that were never taken: how many, and the reason.
        stale: Functions with a reason that have none of it any more, or are gone.
        missed: The number of branches that were never taken, also in unused functions.
    """

    functions: int
    branches: int
    unused: dict[str, str | None]
    partial: dict[str, tuple[int, str | None]]
    stale: tuple[str, ...]
    missed: int

    @property
    def explained(self) -> bool:
        """True if each entry has a reason, and no other function has one."""
        return not self.stale and all(self.unused.values()) and all(reason for _, reason in self.partial.values())


@attrs.frozen
class Reasons:
    """Hold the reasons of `tla/uncovered.toml`: of whole functions, and of branches with their largest number."""

    functions: dict[str, str]
    branches: dict[str, tuple[int, str]]


@attrs.frozen
class Covered:
    """Hold what ran: functions by file and first line, and the branches of every function, all and those not taken."""

    functions: set[tuple[str, int]]
    branches: dict[tuple[str, int], tuple[int, int]]


def functions() -> dict[tuple[str, int], str]:
    """Return the core's functions and methods by file and first line, such as `store.registry.Registry.create`."""
    found: dict[tuple[str, int], str] = {}
    for path in sorted(CORE.rglob("*.py")):
        module = ".".join(path.relative_to(CORE).with_suffix("").parts)
        found |= {(str(path), line): f"{module}.{name}" for name, line in _defined(ast.parse(path.read_text()), "")}
    return found


def _defined(tree: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _defined(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            # Code begins with its first decorator.
            yield f"{prefix}{node.name}", min([node.lineno, *(one.lineno for one in node.decorator_list)])


def covered(configurations: Iterable[Configuration], beside: Explored = tuple) -> Covered:
    """Return what runs while graphs are explored, and what is explored `beside` them.

    Raises:
        ModelError: the package that records it is missing.
    """
    try:
        coverage = import_module("coverage")
    except ModuleNotFoundError as error:
        raise ModelError("this needs the package coverage: install stablecast[dev]") from error
    for name in sorted(one.name for one in walk_packages(core.__path__, f"{core.__name__}.")):
        import_module(name)  # An import runs functions, and is no step of a machine.
    record = coverage.Coverage(data_file=None, branch=True, source=[str(CORE)], config_file=False)
    record.start()
    try:
        for one in configurations:
            equal.core_graph(one)
        for _ in beside():
            pass
    finally:
        record.stop()
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        record.json_report(outfile=str(report))
        files: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))["files"]
    return _covered(files)


def _covered(files: dict[str, Any]) -> Covered:
    """Return what a report has, by the place of each function."""
    places: dict[str, dict[str, int]] = {}
    for (path, line), name in functions().items():
        module = ".".join(Path(path).relative_to(CORE).with_suffix("").parts)
        places.setdefault(path, {})[name.removeprefix(f"{module}.")] = line
    ran: set[tuple[str, int]] = set()
    branches: dict[tuple[str, int], tuple[int, int]] = {}
    for file, found in files.items():
        path = str(Path(file).resolve())
        for name, one in found["functions"].items():
            place = (path, places.get(path, {}).get(name, 0))
            if place[1]:
                summary = one["summary"]
                branches[place] = (summary["num_branches"], summary["missing_branches"])
                if one["executed_lines"]:
                    ran.add(place)
    return Covered(ran, branches)


def reasons(models: Path) -> Reasons:
    """Return the reasons by function.

    Raises:
        ModelError: they cannot be read.
    """
    try:
        known = tomllib.loads((models / REASONS).read_text(encoding="utf-8"))
        of_functions = {name: reason for reason, names in known["reasons"].items() for name in names}
        counted = known["branches"].items()
        return Reasons(of_functions, {name: (most, reason) for reason, of in counted for name, most in of.items()})
    except (OSError, AttributeError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{models / REASONS} has no reasons: {error!r}") from error


def uncovered(configurations: Iterable[Configuration], models: Path, beside: Explored = tuple) -> Uncovered:
    """Explore graphs, and more `beside` them, and return what never runs in the core."""
    every, known = functions(), reasons(models)
    ran = covered(configurations, beside)
    unused = sorted(name for place, name in every.items() if place not in ran.functions)
    partial: dict[str, tuple[int, str | None]] = {}
    for place, (_, missing) in ran.branches.items():
        if missing and place in ran.functions:
            most, reason = known.branches.get(every[place], (0, None))
            partial[every[place]] = (missing, reason if missing <= most else None)
    stale = (known.functions.keys() - set(unused)) | (known.branches.keys() - partial.keys())
    return Uncovered(
        len(every),
        sum(one for one, _ in ran.branches.values()),
        {name: known.functions.get(name) for name in unused},
        dict(sorted(partial.items())),
        tuple(sorted(stale)),
        sum(missing for _, missing in ran.branches.values()),
    )
