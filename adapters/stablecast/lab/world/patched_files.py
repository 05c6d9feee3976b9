"""The functions of Python that open, read and change files, replaced for the programs of a world.

While `PatchedFiles` is active, a program of a world acts on the simulated files of its host: by `open`, by the
functions of `os`, and by everything that is built on them (`pathlib`, `shutil`, `tempfile`, `logging`, `fcntl.flock`).
Other code calls the real functions as before. `file_overlay` says which real files a program still sees.

Names that modules have imported from `os`, `io` and `builtins` are replaced as well. The import system is not touched,
because it uses the functions of the module `posix`.

These cannot be simulated, and are refused by a sentence:

- databases of `sqlite3` that a URI or a factory names (`databases` keeps the others); `dbm` by way of its C libraries
  is not noticed;
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
from collections.abc import Callable
from typing import Final, Self

from stablecast.lab.world.file_functions import replacements
from stablecast.lab.world.file_overlay import FileOverlay, Function
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.user_code.replacement import Replacements

UNTOUCHED_MODULES: Final = frozenset({"posix", "_io"})
"""Modules whose names stay, because the import system needs them."""

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
    def __init__(self) -> None:
        real: dict[str, Function] = {"io.open": io.open, "flock": fcntl.flock, "fcntl": fcntl.fcntl}
        real |= {"lockf_": fcntl.lockf, "ioctl": fcntl.ioctl, "mmap": mmap.mmap}
        real |= {name: value for name, value in vars(os).items() if callable(value)}
        self.overlay = FileOverlay(real)
        table = replacements(self.overlay)
        self._supports = [(getattr(one.owner, one.name), one.new) for one in table if one.owner is os]
        self._replacements = Replacements(table, UNTOUCHED_MODULES)

    def install(self) -> None:
        """Replace every function, under all names that modules have for it."""
        self._replacements.install()
        for name in SUPPORT_SETS:
            known = getattr(os, name)
            known |= {new for old, new in self._supports if old in known}
        self.overlay.active = True

    def remove(self) -> None:
        """Put all real functions back."""
        self.overlay.active = False
        self._replacements.remove()
        for name in SUPPORT_SETS:
            getattr(os, name).difference_update([new for _, new in self._supports])


@functools.cache
def _patches() -> _Patches:
    """Return the replacements; the first world makes them."""
    return _Patches()
