"""Copies of machines, fast: the explorer makes one for every edge of a graph.

Machines are trees of plain values (they are snapshotted by schema), so no two places share a mutable part: what is
frozen is shared by the copies, everything else is copied.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import cache
from operator import eq
from typing import Any, Generic, TypeVar

import attrs

T = TypeVar("T")
_Copier = Callable[[Any], Any]


def clone(value: T) -> T:
    """A copy that shares nothing mutable with `value`. Raises TypeError for what is no machine's state."""
    copy: T = _copier(type(value))(value)
    return copy


def alike(one: Any, other: Any) -> bool:
    """Whether two machines are equal in all that they hold, also in fields that their `==` leaves out.

    Two dicts are alike only in the same order, because a machine may go through them.
    """
    if one is other:
        return True
    kind = type(one)
    return kind is type(other) and (_COMPARERS.get(kind) or _comparer(kind))(one, other)


@attrs.frozen(eq=False)
class Shared(Generic[T]):
    """A machine that copies of a world have in common until one of them changes it."""

    machine: T

    def own(self) -> "Shared[T]":
        """One to change."""
        return Shared(clone(self.machine))


def _shared(value: Any) -> Any:
    return value


_COPIERS: dict[type, _Copier] = {
    **dict.fromkeys((int, str, bytes, bool, type(None), frozenset), _shared),
    tuple: lambda value: tuple(_COPIERS[type(part)](part) if type(part) in _COPIERS else clone(part) for part in value),
    list: lambda value: [clone(part) for part in value],
    set: set,
    dict: lambda value: {key: clone(part) for key, part in value.items()},
    deque: lambda value: deque((clone(part) for part in value), value.maxlen),
}


def _copier(kind: type) -> _Copier:
    copier = _COPIERS.get(kind)
    if copier is None:
        copier = _COPIERS[kind] = _made(kind)
    return copier


def _made(kind: type) -> _Copier:
    if issubclass(kind, Enum):
        return _shared
    if not attrs.has(kind):
        raise TypeError(f"{kind.__name__} is not the state of a machine; machines are attrs classes of plain values")
    if kind.__setattr__ is not object.__setattr__ and _is_frozen(kind):
        return _shared
    names = _fields(kind)

    def copy(value: Any) -> Any:
        new = kind.__new__(kind)
        for name in names:
            part = getattr(value, name)
            setattr(new, name, _copier(type(part))(part))
        return new

    return copy


def _all_alike(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(map(alike, one, other))


_COMPARERS: dict[type, Callable[[Any, Any], bool]] = {
    **dict.fromkeys((int, str, bytes, bool, frozenset, set), eq),
    **dict.fromkeys((tuple, list, deque), _all_alike),
    dict: lambda one, other: list(one) == list(other) and all(map(alike, one.values(), other.values())),
}


def _comparer(kind: type) -> Callable[[Any, Any], bool]:
    """That of an attrs class; members of an enumeration are themselves alone."""
    names = _fields(kind) if attrs.has(kind) else ()

    def compare(one: Any, other: Any) -> bool:
        return bool(names) and all(alike(getattr(one, name), getattr(other, name)) for name in names)

    _COMPARERS[kind] = compare
    return compare


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind))


def _is_frozen(kind: type) -> bool:
    return kind.__setattr__.__name__ == "_frozen_setattrs"
