"""Copy machines fast: the explorer copies one for every edge of a graph.

Machines are trees of plain values, so no two places share a mutable part. Copies share frozen parts and copy all
others.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import cache
from operator import eq
from typing import Any, Generic, TypeVar

import attrs

from stablecast.lab.model.canonical import Fn

T = TypeVar("T")
_Copier = Callable[[Any], Any]


def clone(value: T) -> T:
    """Return a copy that shares no mutable part with `value`.

    Raises TypeError for a type that is not a machine's state.
    """
    copy: T = _copier(type(value))(value)
    return copy


def alike(one: Any, other: Any) -> bool:
    """Return whether two machines are equal in all fields, also those that their `==` leaves out.

    Two dicts are equal only in the same order, because a machine may iterate over them.
    """
    if one is other:
        return True
    kind = type(one)
    return kind is type(other) and (_COMPARERS.get(kind) or _comparer(kind))(one, other)


@attrs.define(eq=False)
class SharedMachine(Generic[T]):
    """Hold a machine that copies of a world share until one of them changes it.

    `lent` is true if another world may hold the same machine.
    """

    machine: T
    lent: bool = False

    def own(self) -> T:
        """Return the machine for a change. A machine that is lent is copied first."""
        if self.lent:
            self.machine, self.lent = clone(self.machine), False
        return self.machine

    def lend(self) -> "SharedMachine[T]":
        """Return another holder of the same machine."""
        self.lent = True
        return SharedMachine(self.machine, lent=True)


def _shared(value: Any) -> Any:
    return value


_COPIERS: dict[type, _Copier] = {
    **dict.fromkeys((int, str, bytes, bool, type(None), frozenset, Fn), _shared),
    tuple: lambda value: tuple(_COPIERS[type(part)](part) if type(part) in _COPIERS else clone(part) for part in value),
    list: lambda value: [clone(part) for part in value],
    set: set,
    dict: lambda value: {key: clone(part) for key, part in value.items()},
    SharedMachine: SharedMachine.lend,
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
    **dict.fromkeys((int, str, bytes, bool, frozenset, set, Fn), eq),
    **dict.fromkeys((tuple, list, deque), _all_alike),
    SharedMachine: lambda one, other: alike(one.machine, other.machine),
    dict: lambda one, other: list(one) == list(other) and all(map(alike, one.values(), other.values())),
}


def _comparer(kind: type) -> Callable[[Any, Any], bool]:
    """Return the comparison of an attrs class. Members of an enumeration are equal only to themselves."""
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
