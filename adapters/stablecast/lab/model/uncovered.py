"""List the functions of the core that never run while graphs are explored, each with its reason.

The reasons are in `tla/uncovered.toml`: sentences, each with the functions that it is about.
"""

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
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
    "Recovery/graph_close",
    "Recovery/graph_maximum",
    "Recovery/graph_slow",
    "Recovery/graph_small",
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
    "WorkSharing/graph_die",
    "WorkSharing/graph_moves",
)
"""Graphs that are explored if none is named: some of each model, in a few minutes of CPU time."""
CORE: Final = Path(next(iter(core.__path__))).resolve()


@attrs.frozen
class Uncovered:
    """Hold the functions that never ran, by name with their reason, and those with a reason that ran or are gone."""

    functions: int
    unused: dict[str, str | None]
    stale: tuple[str, ...]

    @property
    def explained(self) -> bool:
        """True if each unused function has a reason, and no other one has."""
        return not self.stale and all(self.unused.values())


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


def called(configurations: Iterable[Configuration]) -> set[tuple[str, int]]:
    """Return the functions that run while graphs are explored, by file and first line."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, _event: str, _argument: Any) -> None:
        codes.add(frame.f_code)

    before = sys.gettrace()
    sys.settrace(note)
    try:
        for one in configurations:
            equal.core_graph(one)
    finally:
        sys.settrace(before)
    return {(str(Path(code.co_filename).resolve()), code.co_firstlineno) for code in codes}


def reasons(models: Path) -> dict[str, str]:
    """Return the reasons by function.

    Raises:
        ModelError: they cannot be read.
    """
    try:
        known = tomllib.loads((models / REASONS).read_text(encoding="utf-8"))["reasons"]
        return {name: reason for reason, names in known.items() for name in names}
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{models / REASONS} has no reasons: {error!r}") from error


def uncovered(configurations: Iterable[Configuration], models: Path) -> Uncovered:
    """Explore graphs and return the functions of the core that never run."""
    every, ran, known = functions(), called(configurations), reasons(models)
    unused = sorted(name for place, name in every.items() if place not in ran)
    return Uncovered(len(every), {name: known.get(name) for name in unused}, tuple(sorted(known.keys() - set(unused))))
