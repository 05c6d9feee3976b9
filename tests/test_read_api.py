"""Code outside the core asks endpoints through their read API, never through the parts that they are made of.

The properties of `SourceEndpoint`, `ReceiverSession` and `StoreEndpoint`, and their `status`, are that API. Their other
fields are parts: an embedder who reads one would break with every change of the core.
"""

import ast
from collections.abc import Iterator

import attrs

from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from tests.support.tree import LAYERS, ROOT, name, python_files, text_files

ENDPOINTS = (SourceEndpoint, ReceiverSession, StoreEndpoint)
OPEN = frozenset({"config", "state", "check_at"})
"""Fields of endpoints that hold a value, not a part."""
HELD_AS = frozenset({"machine", "_machine", "endpoint", "_endpoint"})
"""Names of attributes that hold an endpoint, in whatever class."""
OTHER_MACHINES = ("adapters/stablecast/resolver/", "adapters/stablecast/lab/model/worlds/router")
"""Rooms whose machines are no endpoints of the core."""
SHORTCUTS = {
    SourceEndpoint: {"window"},
    ReceiverSession: {"enrollment", "window", "requests", "lives"},
    StoreEndpoint: {"clients", "repositories", "streams", "tickets"},
}
"""Properties of endpoints that return a part, for the core and its tests."""
KNOWN: dict[str, str] = {
    "adapters/stablecast/lab/prove/receivers.py": "an explorer tells states apart, for which a status is too coarse",
    "adapters/stablecast/lab/prove/stores.py": "an explorer tells states apart, for which a status is too coarse",
}
"""Files outside the core that reach into an endpoint, each with its reason; the list may only shrink."""


def parts(endpoint: type) -> set[str]:
    return {field.name for field in attrs.fields(endpoint)} - OPEN | SHORTCUTS[endpoint]


PARTS = {endpoint.__name__: parts(endpoint) for endpoint in ENDPOINTS}
ALL_PARTS = set[str]().union(*PARTS.values())


def _annotated(annotation: ast.expr | None) -> set[str]:
    """The parts of the endpoint that an annotation names, if it names one."""
    if isinstance(annotation, ast.Constant):  # a name in quotes
        annotation = ast.parse(str(annotation.value), mode="eval").body
    named = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)} if annotation else set()
    if named & {"dict", "Mapping", "list", "Sequence", "Iterable", "Iterator", "Callable", "type"}:
        return set()
    return set[str]().union(*(PARTS.get(one, set()) for one in named))


def holders(tree: ast.Module) -> dict[str, set[str]]:
    """Names that hold an endpoint in this module, and the parts that it has."""
    found: dict[str, set[str]] = dict.fromkeys(HELD_AS, ALL_PARTS)
    for node in ast.walk(tree):
        match node:
            case (
                ast.arg(arg=held, annotation=annotation)
                | ast.AnnAssign(target=ast.Name(id=held) | ast.Attribute(attr=held), annotation=annotation)
            ):
                known = _annotated(annotation)
            case ast.FunctionDef(name=held, returns=annotation):
                known = _annotated(annotation)
            case ast.Assign(
                targets=[ast.Name(id=held)], value=ast.Call(func=ast.Attribute(value=ast.Name(id=endpoint)))
            ):
                known = PARTS.get(endpoint, set())
            case _:
                continue
        if known:
            found[held] = found.get(held, set()) | known
    return found


def reached(source: str) -> Iterator[str]:
    """`line: expression` for each part of an endpoint that a module reads."""
    tree = ast.parse(source)
    known = holders(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=held) | ast.Attribute(attr=held), attr=part):
                if part in known.get(held, ()):
                    yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_module_outside_the_core_reaches_into_an_endpoint() -> None:
    files = [name(path) for path in python_files(*(layer for layer in LAYERS if layer != "core"), "examples")]
    files = [file for file in files if not file.startswith(OTHER_MACHINES)]
    found = {file: list(reached((ROOT / file).read_text(encoding="utf-8"))) for file in files}
    wrong = [f"{file}:{line}" for file, lines in found.items() if file not in KNOWN for line in lines]
    wrong += [f"{file} reaches into nothing: take it off the list" for file in KNOWN if not found[file]]
    assert not wrong, "\n".join(wrong)


def test_no_example_of_a_chapter_reaches_into_an_endpoint() -> None:
    chapters = [path for path in text_files() if path.suffix == ".md"]
    blocks = [(path, block) for path in chapters for block in path.read_text(encoding="utf-8").split("```python\n")[1:]]
    wrong = [f"{name(path)}: {line}" for path, block in blocks for line in reached(block.partition("```")[0])]
    assert blocks
    assert not wrong, "\n".join(wrong)


def test_a_reach_is_found() -> None:
    assert list(reached("def f(source: SourceEndpoint) -> int:\n    return source.window.next")) == ["2: source.window"]
    assert list(reached("x = self._machine.registry.clients")) == ["1: self._machine.registry"]
    assert list(reached("source = SourceEndpoint.create(config)\nsource.sending")) == ["2: source.sending"]
    assert list(reached('class A:\n    one: "StoreEndpoint | None"\n\nA().one.tickets')) == ["4: A().one.tickets"]
    assert list(reached("def f(source: SourceEndpoint) -> int:\n    return source.status.term")) == []


def test_every_endpoint_has_parts() -> None:
    assert PARTS["SourceEndpoint"] >= {"enrollment", "sending", "lineage", "outbox"}
    assert all(hasattr(endpoint, part) for endpoint, shortcuts in SHORTCUTS.items() for part in shortcuts)
    assert all(hasattr(endpoint, "status") for endpoint in ENDPOINTS)
