"""Faults that are planted in the core, and the graphs that must show them."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.lab.model import catalog, equal

MODELS = catalog.folder()
KNOWN = catalog.load(MODELS)

Patch = Callable[[pytest.MonkeyPatch], None]


def changed(of: Any, name: str, to: Any) -> Patch:
    """A method, function or constant replaced."""
    return lambda patch: patch.setattr(of, name, to)


def fixed(of: type, name: str, value: Any) -> Patch:
    """A field that has one value for ever."""
    return changed(of, name, property(lambda self: value, nothing))


def after(of: type, name: str, does: Callable[[Any], None]) -> Patch:
    """A method that does something else last."""
    real = getattr(of, name)

    def method(self: Any, *words: Any) -> Any:
        result = real(self, *words)
        does(self)
        return result

    return changed(of, name, method)


def before(of: type, name: str, does: Callable[..., None]) -> Patch:
    """A method that does something else first."""
    real = getattr(of, name)

    def method(self: Any, *words: Any) -> Any:
        does(self, *words)
        return real(self, *words)

    return changed(of, name, method)


def nothing(self: Any, *words: Any, **names: Any) -> None:
    """Do nothing, in place of a step."""


def is_seen(patch: Patch, monkeypatch: pytest.MonkeyPatch, *graphs: str) -> bool:
    """Plant a fault, and return whether one of these graphs is another one then; they are tried in this order."""
    patch(monkeypatch)
    tried = (one for graph in graphs for one in catalog.configurations(MODELS, (graph,)))
    return any(not equal.compare(one, KNOWN[one.name], twins=0).equal for one in tried)
