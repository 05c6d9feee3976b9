"""Copy machines fast: the explorer copies one for every edge of a graph.

Machines are trees of plain values, so no two places share a mutable part. Copies share frozen parts and copy all
others.
"""

from collections import Counter, OrderedDict, deque
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
    copy: T = _COPIERS[type(value)](value)
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


def _tuple(value: Any) -> Any:
    return tuple(_list(value))


def _list(value: Any) -> Any:
    return [part if type(part) in _SHARED else _COPIERS[type(part)](part) for part in value]


def _dict(value: Any) -> Any:
    return {key: part if type(part) in _SHARED else _COPIERS[type(part)](part) for key, part in value.items()}


class _Copiers(dict[type, _Copier]):
    """Hold the copier of each type. That of a machine's part is made when it is first needed."""

    def __missing__(self, kind: type) -> _Copier:
        """Return the copier of an enumeration, or of an attrs class. Raises TypeError."""
        copier = self[kind] = _made(kind)
        return copier


_SHARED: set[type] = {int, str, bytes, bool, type(None), frozenset, Fn}
"""Types whose values copies share."""

_COPIERS = _Copiers(
    {
        **dict.fromkeys(_SHARED, _shared),
        tuple: _tuple,
        list: _list,
        set: set,
        dict: _dict,
        SharedMachine: SharedMachine.lend,
        deque: lambda value: deque(_list(value), value.maxlen),
        Counter: Counter,
        OrderedDict: lambda value: OrderedDict(_dict(value)),
    }
)


def _made(kind: type) -> _Copier:
    if issubclass(kind, Enum) or _is_frozen(kind):
        _SHARED.add(kind)
        return _shared
    if not attrs.has(kind):
        raise TypeError(f"{kind.__name__} is not the state of a machine; machines are attrs classes of plain values")
    # Source text, as attrs itself makes methods: a loop over the names costs three times as much, and copies are most
    # of the work of an explorer.
    lines = ["def copy(value):", " new = create(kind)"]
    for name in _fields(kind):
        lines.append(f" part = value.{name}")
        lines.append(f" new.{name} = part if type(part) in shared else copiers[type(part)](part)")
    names: dict[str, Any] = {"create": kind.__new__, "kind": kind, "shared": _SHARED, "copiers": _COPIERS}
    exec("\n".join([*lines, " return new"]), names)  # noqa: S102 - names of fields are identifiers
    copier: _Copier = names["copy"]
    return copier


def _all_alike(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(map(alike, one, other))


def _dicts_alike(one: Any, other: Any) -> bool:
    return list(one) == list(other) and all(map(alike, one.values(), other.values()))


_COMPARERS: dict[type, Callable[[Any, Any], bool]] = {
    **dict.fromkeys((int, str, bytes, bool, frozenset, set, Fn, Counter), eq),
    **dict.fromkeys((tuple, list, deque), _all_alike),
    SharedMachine: lambda one, other: alike(one.machine, other.machine),
    **dict.fromkeys((dict, OrderedDict), _dicts_alike),
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
    return attrs.has(kind) and kind.__setattr__.__name__ == "_frozen_setattrs"
