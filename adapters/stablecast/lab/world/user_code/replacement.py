"""The replacement of functions in all modules, and of methods in their classes.

A replacement acts in a program of a world, and calls the real function anywhere else. So a module that was imported
while replacements were installed may keep them for ever.
"""

import ctypes
import functools
import gc
import sys
import types
from collections.abc import Callable, Collection
from typing import Any, Final, NoReturn, Protocol, cast

import attrs

from stablecast.lab.world.process import SimulatedProcess

UNTOUCHED_PACKAGE: Final = "stablecast.lab.world"
"""The world itself uses the real functions."""


class Programs(Protocol):
    """The way to the program that runs now."""

    def __call__(self) -> SimulatedProcess | None:
        """Return the process of the running thread, None outside of programs."""


def nobody() -> None:
    """Return None: no world is installed."""


class _Installation:
    """The present installation. Replacements are made once and ask this object."""

    def __init__(self) -> None:
        self.programs: Programs = nobody
        self.echoes = False
        self.thread_hook: Any = None


installation: Final = _Installation()


def program() -> SimulatedProcess | None:
    """Return the process of the running thread, None outside of programs."""
    return installation.programs()


@attrs.frozen
class Replacement:
    """A replaced attribute.

    Attributes:
        owner: The module or class.
        name: The name of the attribute.
        new: The replacement.
        everywhere: Whether each module that has the same object under any name gets the replacement, too.
        static: Whether the class is one of C, whose attributes cannot be set in the usual way.
    """

    owner: Any
    name: str
    new: Any
    everywhere: bool = False
    static: bool = False


Table = list[Replacement]


def in_programs(owner: Any, name: str, new: Callable[..., Any]) -> Replacement:
    """Replace a function for programs. `new` receives the process before the arguments."""
    real = getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        process = installation.programs()
        if process is None:
            return real(*args, **options)
        return new(process, *args, **options)

    return Replacement(owner, name, named_like(call, real), everywhere=isinstance(owner, types.ModuleType))


def method_in_programs(owner: type, name: str, new: Callable[..., Any]) -> Replacement:
    """Replace a method for programs. `new` receives the process and the real method before the arguments."""
    real = getattr(owner, name)

    def call(self: Any, *args: Any, **options: Any) -> Any:
        process = installation.programs()
        if process is None:
            return real(self, *args, **options)
        return new(process, real, self, *args, **options)

    return Replacement(owner, name, named_like(call, real))


def refusal_in_programs(owner: Any, name: str, what: str, remedy: str) -> Replacement:
    return in_programs(owner, name, lambda *_, **__: refuse(what, remedy))


def refuse(what: str, remedy: str) -> NoReturn:
    """Raise the error of what is not simulated."""
    raise NotImplementedError(f"a world does not simulate {what}: {remedy}")


def named_like(call: Callable[..., Any], real: Any) -> Callable[..., Any]:
    """Give a replacement the name and the documentation of the real function."""
    return functools.update_wrapper(call, real, assigned=("__name__", "__qualname__", "__doc__"), updated=())


class Replacements:
    """All replacements; `install` and `remove` change the modules. Only the outermost of nested pairs does so."""

    def __init__(self, table: Table, untouched: Collection[str] = ()) -> None:
        """Prepare the replacements of a table; the modules named by `untouched` keep the real functions."""
        self._table = table
        self._untouched = untouched
        self._everywhere = {id(old): (old, one.new) for one in table if one.everywhere for old in (_held(one),)}
        self._places: dict[types.ModuleType, list[tuple[str, Any, Any]]] = {}
        self._removals: list[Callable[[], None]] = []
        self._depth = 0

    def install(self) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        for one in self._table:
            if not one.everywhere:
                self._removals.append(_set(one))
        if not self._everywhere:
            return
        for module in list(sys.modules.values()):
            for name, old, new in self._places_in(module):
                if vars(module).get(name) is old:
                    setattr(module, name, new)
                    self._removals.append(functools.partial(setattr, module, name, old))

    def remove(self) -> None:
        """Put the real functions back."""
        self._depth -= 1
        while self._removals and not self._depth:
            self._removals.pop()()

    def _places_in(self, module: Any) -> list[tuple[str, Any, Any]]:
        """Return the names of a module that hold a replaced object; each module is searched once."""
        if type(module) is not types.ModuleType or module.__name__ in self._untouched:
            return []
        if module.__name__.startswith(UNTOUCHED_PACKAGE):
            return []
        places = self._places.get(module)
        if places is None:
            known = self._everywhere
            found = [(name, value) for name, value in list(vars(module).items()) if id(value) in known]
            places = [(name, value, known[id(value)][1]) for name, value in found if known[id(value)][0] is value]
            self._places[module] = places
        return places


def _held(one: Replacement) -> Any:
    return getattr(one.owner, one.name)


def _set(one: Replacement) -> Callable[[], None]:
    """Set an attribute of a class; return the call that puts the old one back."""
    if one.static:
        return _set_static(one.owner, one.name, one.new)
    missing = object()
    function = isinstance(one.owner, types.FunctionType)  # Its defaults are no part of its namespace.
    old = getattr(one.owner, one.name) if function else vars(one.owner).get(one.name, missing)
    setattr(one.owner, one.name, one.new)
    if old is missing:
        return functools.partial(delattr, one.owner, one.name)
    return functools.partial(setattr, one.owner, one.name, old)


def _set_static(owner: type, name: str, new: Any) -> Callable[[], None]:
    """Set an attribute of a class of C in its dictionary, so that all modules have it, however they imported it."""
    namespace = cast("dict[str, Any]", gc.get_referents(owner.__dict__)[0])
    old = namespace[name]

    def put(value: Any) -> None:
        namespace[name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))

    put(new)
    return functools.partial(put, old)
