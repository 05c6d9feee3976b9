"""A machine of which single functions are replaced, for tests."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.runtime import machine


class _Instead:
    """An object whose named functions are others; all else is the object's own."""

    def __init__(self, real: object, functions: dict[str, Callable[..., Any]]) -> None:
        self.__dict__.update(functions)
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def replace(patch: pytest.MonkeyPatch, part: str, **functions: Callable[..., Any]) -> None:
    """Replaces functions of one object of the machine (`clock`, `files` ...) until the patch ends."""
    real = getattr(machine, part)
    for name in functions:
        assert hasattr(real, name), f"machine.{part} has no {name}"
    patch.setattr(machine, part, _Instead(real, functions))
