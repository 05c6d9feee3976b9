"""The entries of a simulated directory, as `os.scandir` yields them."""

import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, Self

StatAt = Callable[..., os.stat_result]


class SimulatedEntry:
    """An entry of `os.scandir`, like `os.DirEntry`."""

    def __init__(self, name: Any, path: Any, directory: int | None, stat_at: StatAt) -> None:
        """Describe a name in a directory, which is a descriptor or part of the path; `stat_at` is like `os.stat`."""
        self.name = name
        self.path = path
        self._stat_at = stat_at
        self._directory = directory

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._stat_at(self.path, dir_fd=self._directory, follow_symlinks=follow_symlinks)

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat.S_ISDIR, follow_symlinks=follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat.S_ISREG, follow_symlinks=follow_symlinks)

    def is_symlink(self) -> bool:
        return self._is(stat.S_ISLNK, follow_symlinks=False)

    def is_junction(self) -> bool:
        """Return False: only another system has junctions."""
        return False

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def _is(self, kind: Callable[[int], bool], *, follow_symlinks: bool) -> bool:
        try:
            return kind(self.stat(follow_symlinks=follow_symlinks).st_mode)
        except FileNotFoundError:
            return False


class SimulatedEntries:
    """The iterator of `os.scandir`, which is a context manager too."""

    def __init__(self, path: Any, names: list[Any], stat_at: StatAt) -> None:
        """Yield the names in a directory, which is a path or a descriptor."""
        directory = path if isinstance(path, int) else None
        text = "." if directory is not None else os.fspath(path)
        if isinstance(text, bytes):
            names = [os.fsencode(name) for name in names]
        self._entries: Iterator[SimulatedEntry] = iter(
            [
                SimulatedEntry(name, name if directory is not None else os.path.join(text, name), directory, stat_at)  # noqa: PTH118
                for name in names
            ]
        )

    def close(self) -> None:
        """End the listing before its last entry."""
        self._entries = iter(())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SimulatedEntry:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the listing before its last entry."""
        self.close()
