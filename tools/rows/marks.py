"""The tests that show rows: `@pytest.mark.rows("P-308", "P-310")` binds rows to the test below it.

`pytest.param(..., marks=pytest.mark.rows("P-821"))` binds rows to one case of a test. A comment or docstring binds
nothing. The marks are read from the syntax tree: it takes a second, where collection takes a minute.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.tree import name, python_files

_RULE = re.compile(r"\b(?:[PRTM]-\d{3}|T\d{1,2}|U\d{1,2}|C-\d{2})\b")
_NEVER_RUN = frozenset({"skip", "xfail", "thorough"})
"""Marks of tests that a plain run does not collect, or whose failure means nothing."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _mark(node: ast.AST) -> str:
    """Return NAME of `pytest.mark.NAME` or `pytest.mark.NAME(...)`, otherwise an empty string."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute) and target.value.attr == "mark":
        return target.attr
    return ""


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the arguments of every `pytest.mark.rows` below a node."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and _mark(call) == "rows":
            for argument in call.args:
                yield ast.literal_eval(argument)


def _tables(module: ast.Module) -> dict[str, list[str]]:
    """Return the rows that the cases in the module's own tables show, by the table's name."""
    found: dict[str, list[str]] = {}
    for node in module.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        bound = list(_bound(node)) if targets else []
        found |= {target.id: bound for target in targets if isinstance(target, ast.Name) and bound}
    return found


def _tests(module: ast.Module) -> Iterator[tuple[str, _Function]]:
    """Yield the node id below the file, and the function, of every test that a plain run collects."""
    for node in module.body:
        if isinstance(node, _Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from ((f"{node.name}::{one.name}", one) for one in node.body if isinstance(one, _Function))


def marks(source: str) -> dict[str, list[str]]:
    """Return the rows of each test of a module that a plain run collects, by the test's node id below its file."""
    return _marks(ast.parse(source))


def _marks(module: ast.Module) -> dict[str, list[str]]:
    tables = _tables(module)
    found: dict[str, list[str]] = {}
    for node_id, function in _tests(module):
        decorators = function.decorator_list
        if not function.name.startswith("test") or _NEVER_RUN & {_mark(one) for one in decorators}:
            continue
        bound = [row for decorator in decorators for row in _bound(decorator)]
        names = {one.id for decorator in decorators for one in ast.walk(decorator) if isinstance(one, ast.Name)}
        bound += [row for table in sorted(names & tables.keys()) for row in tables[table]]
        if bound:
            found[node_id] = list(dict.fromkeys(bound))
    return found


def strays(source: str) -> list[str]:
    """Return the rows of a module's marks that are bound to no test: on a helper, or on a table that no test uses."""
    if "mark.rows" not in source:
        return []
    module = ast.parse(source)
    return sorted(set(_bound(module)) - {row for found in _marks(module).values() for row in found})


def test_files() -> list[Path]:
    """Return the files that pytest collects."""
    return [path for path in python_files("tests") if path.name.startswith("test_")]


@cache
def tests_by_row() -> dict[str, list[str]]:
    """Return the node ids of the tests of each row, below the project."""
    found: dict[str, list[str]] = {}
    for path in test_files():
        text = path.read_text(encoding="utf-8")
        if "mark.rows(" not in text:
            continue
        for node_id, bound in marks(text).items():
            for row in bound:
                found.setdefault(row, []).append(f"{name(path)}::{node_id}")
    return found


def rules(source: str) -> set[str]:
    """Return the ids of all kinds in comments and strings of a module's source."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = (token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING))
    return {rule for text in texts for rule in _RULE.findall(text)}
