"""Find what production code feeds into machines and what it does with their effects, from the syntax trees.

Production code is what daemons, commands and the client run. Laboratories, judges and the test plugin are not: an input
that only a simulator feeds is a behaviour that no user has.
"""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args

import attrs

from tests.support.tree import ROOT, name

PRODUCTION: Final = ("cli", "client", "config", "ops", "resolver", "router", "runtime", "store", "text")
"""The rooms of the adapters whose code users run."""


@attrs.frozen
class Uses:
    """The names of other modules that a set of files uses.

    Attributes:
        called: Classes that are constructed.
        named: Classes that are named in any way: in a `case`, an `isinstance`, a table. A union names no member.
        attributes: Names of attributes that are read or called, and keywords of calls.
        texts: Strings, such as the paths of fields in tables of options.
    """

    called: frozenset[Any]
    named: frozenset[Any]
    attributes: frozenset[str]
    texts: frozenset[str]


def production_files() -> list[Path]:
    return sorted(path for room in PRODUCTION for path in (ROOT / "adapters" / "stablecast" / room).rglob("*.py"))


def members(alias: Any) -> tuple[type, ...]:
    """Return the classes of a union, or the class itself."""
    return get_args(alias) or (alias,)


def _imported(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield each local name that an import binds to a module or member of stablecast."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stablecast"):
            module = import_module(node.module or "")
            for alias in node.names:
                found = getattr(module, alias.name, None)
                if found is None:
                    found = import_module(f"{node.module}.{alias.name}")
                yield alias.asname or alias.name, found
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("stablecast") and alias.asname:
                    yield alias.asname, import_module(alias.name)


def _own(path: Path, tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield the classes that the module defines itself."""
    parts = name(path).removesuffix(".py").split("/")[1:]
    if any(isinstance(node, ast.ClassDef) for node in tree.body):
        module = import_module(".".join(part for part in parts if part != "__init__"))
        yield from ((node.name, getattr(module, node.name)) for node in tree.body if isinstance(node, ast.ClassDef))


def _meant(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return what a name or `module.name` stands for, or None."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        module = _meant(node.value, names)
        return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    return None


def _kinds(found: Any) -> tuple[type, ...]:
    return (found,) if isinstance(found, type) else ()


def uses(files: tuple[Path, ...]) -> Uses:
    called: set[Any] = set()
    named: set[Any] = set()
    attributes: set[str] = set()
    texts: set[str] = set()
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {**dict(_own(path, tree)), **dict(_imported(tree))}
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=func):
                    called.update(_kinds(_meant(func, names)))
                    attributes |= {keyword.arg for keyword in node.keywords if keyword.arg}
                case ast.Constant(value=str(text)):
                    texts.add(text)
                case ast.Attribute(attr=attr):
                    attributes.add(attr)
            if isinstance(node, ast.Name | ast.Attribute):
                named.update(_kinds(_meant(node, names)))
    return Uses(frozenset(called), frozenset(named), frozenset(attributes), frozenset(texts))


@cache
def production() -> Uses:
    return uses(tuple(production_files()))
