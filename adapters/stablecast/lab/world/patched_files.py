"""The functions of Python that open, read and change files, replaced for the programs of a world.

While `PatchedFiles` is active, a program of a world acts on the simulated files of its host: by `open`, by the
functions of `os`, and by everything that is built on them (`pathlib`, `shutil`, `tempfile`, `logging`, `fcntl.flock`).
Other code calls the real functions as before. `file_overlay` says which real files a program still sees.

Names that modules have imported from `os`, `io` and `builtins` are replaced as well. The import system is not touched,
because it uses the functions of the module `posix`.

These cannot be simulated, and are refused by a sentence:

- databases of `sqlite3` in files (those in memory work); `dbm` by way of its C libraries is not noticed;
- a mapping that can be written (`mmap.mmap` for reading is a copy of the bytes);
- record locks (`fcntl.lockf`, `os.lockf`); `fcntl.flock` works;
- named pipes and devices (`os.mkfifo`, `os.mknod`).

These cannot be noticed, and act on the real machine: `io.FileIO` called directly, default arguments and attributes of
classes that hold a function of `os`, libraries in C that open files themselves (OpenSSL, lxml, pyarrow), `ctypes`, and
child processes. Files of `/proc`, `/sys` and `/dev` are the real ones, so what they show is not repeated by a seed.
"""

import fcntl
import functools
import io
import mmap
import os
import sys
import types
from collections.abc import Callable
from typing import Any, Final, Self

from stablecast.lab.world.file_functions import replacements
from stablecast.lab.world.file_overlay import FileOverlay, Function
from stablecast.lab.world.filesystem import FileSystem

UNTOUCHED_MODULES: Final = frozenset({"posix", "_io", __name__})
"""Modules whose names stay: the import system needs the first two."""

SUPPORT_SETS: Final = ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks")


class PatchedFiles:
    """A context in which the functions of Python dispatch to simulated files; see the module.

    Contexts may be nested: the innermost decides. All share one table, because its search through all modules takes
    more time than a small world.
    """

    def __init__(self, current: Callable[[], FileSystem | None]) -> None:
        """Prepare a context.

        Args:
            current: Returns the file system of the running program, None for code outside of worlds.
        """
        self._current = current
        self._previous: Callable[[], FileSystem | None] | None = None

    def __enter__(self) -> Self:
        """Install the replacements, unless an outer context has done so."""
        patches = _patches()
        overlay = patches.overlay
        self._previous = overlay.current if overlay.active else None
        overlay.current = self._current
        if self._previous is None:
            patches.install()
        return self

    def __exit__(self, *_: object) -> None:
        """Put the functions back. Modules that were imported meanwhile keep replacements, which then do nothing."""
        patches = _patches()
        if self._previous is None:
            patches.remove()
        else:
            patches.overlay.current = self._previous


class _Patches:
    """The replacements of this interpreter, and the places where they belong."""

    def __init__(self) -> None:
        real: dict[str, Function] = {"io.open": io.open, "flock": fcntl.flock, "fcntl": fcntl.fcntl}
        real |= {"lockf_": fcntl.lockf, "ioctl": fcntl.ioctl, "mmap": mmap.mmap}
        real |= {name: value for name, value in vars(os).items() if callable(value)}
        self.overlay = FileOverlay(real)
        self._table = replacements(self.overlay)
        self._functions = {id(old): (old, new) for _, _, old, new in self._table}
        self._places: dict[types.ModuleType, list[tuple[str, Any, Any]]] = {}
        self._changed: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Replace every function, under all names that modules have for it."""
        for owner, name, _, new in self._table:
            if not isinstance(owner, types.ModuleType):
                self._set(owner, name, new)
        for module in list(sys.modules.values()):
            for name, old, new in self._places_in(module):
                if vars(module).get(name) is old:
                    self._set(module, name, new)
        for name in SUPPORT_SETS:
            functions = getattr(os, name)
            functions |= {new for _, _, old, new in self._table if old in functions}
        self.overlay.active = True

    def remove(self) -> None:
        """Put all real functions back."""
        self.overlay.active = False
        for owner, name, value in reversed(self._changed):
            setattr(owner, name, value)
        self._changed = []
        for name in SUPPORT_SETS:
            getattr(os, name).difference_update([new for _, _, _, new in self._table])

    def _places_in(self, module: Any) -> list[tuple[str, Any, Any]]:
        """Return the names in a module that hold a real function; each module is searched once."""
        if type(module) is not types.ModuleType or module.__name__ in UNTOUCHED_MODULES:
            return []
        places = self._places.get(module)
        if places is None:
            functions = self._functions
            found = [(name, value) for name, value in list(vars(module).items()) if id(value) in functions]
            places = [
                (name, value, functions[id(value)][1]) for name, value in found if functions[id(value)][0] is value
            ]
            self._places[module] = places
        return places

    def _set(self, owner: Any, name: str, value: Any) -> None:
        # A static method must come back as one, so `getattr` is not used on classes.
        before = getattr(owner, name) if isinstance(owner, types.FunctionType) else vars(owner)[name]
        self._changed.append((owner, name, before))
        setattr(owner, name, value)


@functools.cache
def _patches() -> _Patches:
    """Return the replacements; the first world makes them."""
    return _Patches()
