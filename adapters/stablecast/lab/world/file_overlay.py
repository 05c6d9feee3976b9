"""The files that user code in a world sees: the simulated ones of its host, and the real ones below them, read-only.

Reading falls through to the real machine if the simulated file system lacks the path, and no program has made the
directory in which it is missing (`FileSystem.shows_real`). So package data, certificates and time zones are found.

A change never reaches the real machine. If the directory exists only there, the host gets an empty one. A real file
that is opened for writing is copied first. A real file cannot be removed or renamed, and a listing shows either the
simulated or the real names. Devices (`/dev`) are the real ones.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, Final

from stablecast.lab.world.disk import FIRST_DESCRIPTOR, failure
from stablecast.lab.world.file_objects import flags_of
from stablecast.lab.world.filesystem import FileSystem

Function = Callable[..., Any]

MISSING: Final = (FileNotFoundError, NotADirectoryError)
"""Errors of a path that the simulated file system lacks."""

DEVICES: Final = "/dev/"

DESCRIPTOR_METHODS: Final = {
    "stat": "fstat",
    "statvfs": "fstatvfs",
    "chmod": "fchmod",
    "truncate": "ftruncate",
    "utime": "utime",
    "listdir": "listdir",
    "scandir": "scandir",
    "chdir": "chdir",
}
"""The method for each function of a path that also takes a descriptor."""


class FileOverlay:
    """Decides for each call which file system carries it out.

    Attributes:
        active: True while a world is installed.
        current: Returns the file system of the running program, None outside of worlds.
        real: The real functions.
    """

    def __init__(self, real: Mapping[str, Function]) -> None:
        """Dispatch to the real functions until `current` is set and `active` is true."""
        self.active = False
        self.current: Callable[[], FileSystem | None] = lambda: None
        self.real = real

    def system(self) -> FileSystem | None:
        """Return the file system of the running program, None outside of worlds."""
        return self.current() if self.active else None

    def owner(self, fd: int) -> FileSystem:
        """Return the file system of a simulated descriptor, which may have been closed. Raises OSError: EBADF."""
        system = self.current() if self.active else None
        if system is None:
            raise failure(errno.EBADF)
        return system

    # -------------------------------------------------------------------------------------------------------- reading

    def read(self, name: str, system: FileSystem, path: Any, *args: Any, **options: Any) -> Any:
        """Call a function that reads a path or a directory, in the simulated file system or in the real one."""
        if isinstance(path, int):
            if path < FIRST_DESCRIPTOR:
                return self.real[name](path, *args, **options)
            return getattr(self.owner(path), DESCRIPTOR_METHODS[name])(path, *args)
        if self._is_real(path, options):
            return self.real[name](path, *args, **options)
        try:
            found = getattr(system, name)(path, *args, **options)
        except MISSING:
            if not self._shown(system, path, options):
                raise
        else:
            return _as_bytes(found) if isinstance(os.fspath(path), bytes) else found
        return self.real[name](absolute(system, path), *args, **options)

    def access(self, system: FileSystem, path: Any, mode: int, **options: Any) -> bool:
        """Return what `os.access` does; a real file may be read only."""
        if isinstance(path, int) or self._is_real(path, options):
            return bool(self.real["access"](path, mode, **options))
        follow = options.get("follow_symlinks", True)
        if system.exists(path, dir_fd=options.get("dir_fd"), follow_symlinks=follow):
            return system.access(path, mode, **options)
        if not self._shown(system, path, options):
            return False
        return bool(self.real["access"](absolute(system, path), mode, **options))

    # -------------------------------------------------------------------------------------------------------- changes

    def change(self, name: str, system: FileSystem, path: Any, *args: Any, **options: Any) -> Any:
        """Call a function that changes a path, in the simulated file system."""
        if isinstance(path, int):
            if path < FIRST_DESCRIPTOR:
                return self.real[name](path, *args, **options)
            return getattr(self.owner(path), DESCRIPTOR_METHODS[name])(path, *args, **options)
        self._refuse_real_directory(options)
        if name in ("unlink", "remove", "rmdir"):
            self._refuse_real(system, path, options)
        elif name == "mkdir":
            self._adopt_existing(system, path, options)
        else:
            self.adopt(system, path, options)
        return getattr(system, name)(path, *args, **options)

    def change_two(self, name: str, system: FileSystem, source: Any, target: Any, *args: Any, **options: Any) -> Any:
        """Call a function of two paths: `rename`, `replace`, `link` or `symlink`."""
        self._refuse_real_directory(options)
        at = {"dir_fd": options.get("dst_dir_fd", options.get("dir_fd"))}
        if name != "symlink":
            self._refuse_real(system, source, {"dir_fd": options.get("src_dir_fd")})
        self.adopt(system, target, at, contents=False)
        return getattr(system, name)(source, target, *args, **options)

    def open(self, system: FileSystem, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Return a descriptor, as `os.open` does."""
        options = {} if dir_fd is None else {"dir_fd": dir_fd}
        if flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC):
            if self._is_real(path, options):
                self._refuse_real_directory(options)
                return int(self.real["open"](path, flags, mode))
            self.adopt(system, path, options, contents=not flags & os.O_TRUNC)
            return system.open(path, flags, mode, dir_fd=dir_fd)
        return int(self.read("open", system, path, flags, mode, **options))

    def open_file(self, system: FileSystem, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if isinstance(file, int):
            system = self.owner(file) if file >= FIRST_DESCRIPTOR else system
            chosen = system.open_file if file >= FIRST_DESCRIPTOR else self.real["io.open"]
            return chosen(file, mode, *args, **options)
        path = os.fspath(file)
        if options.get("opener") is not None or self._is_real(path, {}):
            return self._open_by(system, path, mode, args, options)
        if set(mode) & set("wax+"):
            # A wrong mode is refused by `open_file`, so it must not touch anything here.
            if len(set(mode) & set("rwax")) == 1:
                self.adopt(system, path, {}, contents=not flags_of(mode) & os.O_TRUNC)
            return system.open_file(path, mode, *args, **options)
        try:
            return system.open_file(path, mode, *args, **options)
        except MISSING:
            if not self._shown(system, path, {}):
                raise
        return self.real["io.open"](absolute(system, path), mode, *args, **options)

    def _open_by(self, system: FileSystem, path: Any, mode: str, args: Any, options: dict[str, Any]) -> Any:
        """Open a device, or a file by the caller's `opener`, which may return a descriptor of either machine."""
        opener = options.pop("opener", None)
        if opener is None:
            return self.real["io.open"](path, mode, *args, **options)
        fd = opener(path, flags_of(mode))
        options.pop("closefd", None)
        chosen = system.open_file if fd >= FIRST_DESCRIPTOR else self.real["io.open"]
        return chosen(fd, mode, *args, **options)

    def adopt(self, system: FileSystem, path: Any, options: Mapping[str, Any], *, contents: bool = True) -> None:
        """Give the host a copy of a real file and its directory that a program is about to change."""
        if options.get("dir_fd") is not None:
            return
        place = absolute(system, path)
        above = place.rpartition("/")[0] or "/"
        if not system.exists(above) and system.shows_real(above) and self._real_mode(above, stat.S_ISDIR) is not None:
            system.disk.make_directories(above)
        if contents and not system.exists(place, follow_symlinks=False) and system.shows_real(place):
            mode = self._real_mode(place, stat.S_ISREG)
            if mode is not None:
                with self.real["io.open"](place, "rb") as file:
                    system.disk.place_file(place, file.read(), mode)

    def _adopt_existing(self, system: FileSystem, path: Any, options: Mapping[str, Any]) -> None:
        """Give the host a directory that exists only on the real machine, so that it cannot be made again."""
        if options.get("dir_fd") is None:
            place = absolute(system, path)
            if not system.exists(place) and system.shows_real(place):
                if self._real_mode(place, stat.S_ISDIR) is not None:
                    system.disk.make_directories(place)
                else:
                    self.adopt(system, path, options)

    def _refuse_real(self, system: FileSystem, path: Any, options: Mapping[str, Any]) -> None:
        """Refuse to remove or rename what exists only on the real machine."""
        dir_fd = options.get("dir_fd")
        if dir_fd is None and not system.exists(path, follow_symlinks=False):
            place = absolute(system, path)
            if system.shows_real(place) and self._real_mode(place, lambda _: True) is not None:
                raise OSError(
                    errno.EROFS,
                    "this is a file of the real machine, which programs of a world may only read; copy it first",
                    place,
                )

    def _refuse_real_directory(self, options: Mapping[str, Any]) -> None:
        for name in ("dir_fd", "src_dir_fd", "dst_dir_fd"):
            fd = options.get(name)
            if fd is not None and fd < FIRST_DESCRIPTOR:
                raise OSError(
                    errno.EROFS, "this is a directory of the real machine, which programs of a world may only read"
                )

    def _is_real(self, path: Any, options: Mapping[str, Any]) -> bool:
        """Return True for devices, and for paths below a real descriptor."""
        dir_fd = options.get("dir_fd")
        if dir_fd is not None:
            return bool(dir_fd < FIRST_DESCRIPTOR)
        return os.fsdecode(path).startswith(DEVICES)

    def _shown(self, system: FileSystem, path: Any, options: Mapping[str, Any]) -> bool:
        return options.get("dir_fd") is None and system.shows_real(absolute(system, path))

    def _real_mode(self, path: str, wanted: Callable[[int], bool]) -> int | None:
        """Return the mode of a real file of the wanted kind, None if there is none."""
        try:
            mode: int = self.real["stat"](path).st_mode
        except OSError:
            return None
        return mode if wanted(mode) else None


def absolute(system: FileSystem, path: Any) -> str:
    """Return a path from the root on, by the working directory of a simulated process."""
    return os.path.normpath(os.path.join(system.getcwd(), os.fsdecode(path)))  # noqa: PTH118 - text, and no `Path`


def _as_bytes(found: Any) -> Any:
    """Return the names that a function found as bytes, because it was called with bytes."""
    if isinstance(found, str):
        return os.fsencode(found)
    return [os.fsencode(name) for name in found] if isinstance(found, list) else found
