"""The replacement of each function of Python that uses files. `patched_files` installs them."""

import builtins
import contextlib
import errno
import fcntl
import glob
import io
import mmap
import os
import tempfile
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from stablecast.lab.world.disk import FIRST_DESCRIPTOR, failure
from stablecast.lab.world.file_overlay import FileOverlay, Function
from stablecast.lab.world.user_code.replacement import Replacement, Table, named_like

DESCRIPTOR_CALLS: Final = (
    *("close", "dup", "read", "pread", "readv", "preadv", "write", "pwrite", "writev", "pwritev", "lseek"),
    *("fsync", "fdatasync", "ftruncate", "posix_fallocate", "fstat", "fstatvfs", "fchmod"),
)
"""Functions of `os` whose first argument is a descriptor."""

READING_CALLS: Final = ("stat", "lstat", "readlink", "listdir", "scandir", "statvfs", "chdir")
CHANGING_CALLS: Final = ("mkdir", "rmdir", "unlink", "remove", "truncate", "chmod", "chown", "utime")
CALLS_OF_TWO_PATHS: Final = ("rename", "replace", "link", "symlink")
"""Functions of `os` whose first argument is a path, or two paths."""

FACTORY: Final = 4
"""Place of the factory among the arguments of `sqlite3.connect` behind the name."""

IGNORED_CALLS: Final = ("posix_fadvise", "fchown", "set_inheritable", "set_blocking", "posix_madvise")
"""Functions of `os` that change nothing at a simulated descriptor."""

REFUSED_CALLS: Final = {
    "mkfifo": "named pipes are not simulated; use a queue or a socket",
    "mknod": "devices are not simulated",
    "lockf": "record locks are not simulated; use fcntl.flock",
    "listxattr": "",
    "getxattr": "",
    "setxattr": "",
    "removexattr": "",
}
"""Functions of `os` that a simulated file lacks, with the sentence. The others fail as on a system without them."""

OPEN_STATUS: Final = frozenset((fcntl.F_GETFL, fcntl.F_GETFD))
SET_STATUS: Final = frozenset((fcntl.F_SETFL, fcntl.F_SETFD))

Unsupported = io.UnsupportedOperation
"""The error of everything that cannot be simulated. It is an OSError and a ValueError."""


def replacements(overlay: FileOverlay) -> Table:
    real = overlay.real
    places: list[tuple[Any, str, Any]] = [
        (builtins, "open", _in_world(overlay, "io.open", overlay.open_file)),
        (os, "open", _in_world(overlay, "open", overlay.open)),
        (os, "access", _in_world(overlay, "access", overlay.access)),
        (os, "sendfile", _sendfile(overlay)),
        (os, "isatty", _constant(overlay, "isatty", value=False)),
        (fcntl, "flock", _by_descriptor(overlay, "flock")),
        (fcntl, "fcntl", _fcntl(overlay)),
        (fcntl, "ioctl", _at_descriptor(overlay, "ioctl", _ioctl)),
        (fcntl, "lockf", _refused(overlay, "lockf_", REFUSED_CALLS["lockf"])),
        (mmap, "mmap", _mapping(overlay)),
        *_temporary(overlay),
        (os, "umask", _in_world(overlay, "umask", lambda system, mask: system.umask(mask))),
    ]
    for make, names in (
        (_by_descriptor, DESCRIPTOR_CALLS),
        (_reading, READING_CALLS),
        (_changing, CHANGING_CALLS),
        (_changing_two, CALLS_OF_TWO_PATHS),
        (_without_argument, ("getcwd", "getcwdb", "sync")),
    ):
        places += [(os, name, make(overlay, name)) for name in names]
    places += [(os, name, _constant(overlay, name, value=None)) for name in IGNORED_CALLS if name in real]
    places += [(os, name, _refused(overlay, name, why)) for name, why in REFUSED_CALLS.items() if name in real]
    if "copy_file_range" in real:
        places.append((os, "copy_file_range", _copy_file_range(overlay)))
    places += [*_held_by_classes(places), *_databases(overlay)]
    return [Replacement(*place, everywhere=isinstance(place[0], types.ModuleType)) for place in places]


def _held_by_classes(places: Iterable[tuple[Any, str, Any]]) -> list[tuple[Any, str, Any]]:
    """Return the replacements of functions that the library holds in classes and in default arguments."""
    known = [(getattr(owner, name), new) for owner, name, new in places]

    def replaced(value: Any) -> Any:
        return next((new for old, new in known if old is value), value)

    found: list[tuple[Any, str, Any]] = []
    for owner in (*vars(glob).values(), *vars(tempfile).values()):
        for name, value in vars(owner).items() if isinstance(owner, type) else ():
            if isinstance(value, staticmethod) and replaced(value.__func__) is not value.__func__:
                found.append((owner, name, staticmethod(replaced(value.__func__))))
            elif isinstance(value, types.FunctionType) and value.__defaults__:
                defaults = tuple(map(replaced, value.__defaults__))
                if any(new is not old for new, old in zip(defaults, value.__defaults__, strict=True)):
                    found.append((value, "__defaults__", defaults))
    return found


# ------------------------------------------------------------------------------------------------- kinds of functions


def _in_world(overlay: FileOverlay, name: str, simulated: Function) -> Function:
    """Return a function that calls `simulated` with the file system in a world, and the real function elsewhere."""
    real = overlay.real[name]

    def call(*args: Any, **options: Any) -> Any:
        system = overlay.system()
        return real(*args, **options) if system is None else simulated(system, *args, **options)

    return named_like(call, overlay.real[name])


def _number(fd: Any) -> int:
    """Return the descriptor of a number or a file object."""
    return fd if isinstance(fd, int) else int(fd.fileno()) if hasattr(fd, "fileno") else -1


def _at_descriptor(overlay: FileOverlay, name: str, simulated: Function) -> Function:
    """Return a function that calls `simulated` with the number of a simulated descriptor, else the real function."""
    real = overlay.real[name]

    def call(fd: Any, *args: Any, **options: Any) -> Any:
        # The store calls these most often of all, with numbers.
        if not overlay.active or (number := fd if fd.__class__ is int else _number(fd)) < FIRST_DESCRIPTOR:
            return real(fd, *args, **options)
        return simulated(number, *args, **options)

    return named_like(call, overlay.real[name])


def _by_descriptor(overlay: FileOverlay, name: str) -> Function:
    def call(number: int, *args: Any, **options: Any) -> Any:
        return getattr(overlay.owner(number), name)(number, *args, **options)

    return _at_descriptor(overlay, name, call)


def _reading(overlay: FileOverlay, name: str) -> Function:
    default = (".",) if name in ("listdir", "scandir") else ()

    def call(system: Any, *args: Any, **options: Any) -> Any:
        path, *others = args or ((options.pop("path"),) if "path" in options else default)
        return overlay.read(name, system, "." if path is None else path, *others, **options)

    return _in_world(overlay, name, call)


def _changing(overlay: FileOverlay, name: str) -> Function:
    def call(system: Any, *args: Any, **options: Any) -> Any:
        path, *others = args or (options.pop("path"),)
        return overlay.change(name, system, path, *others, **options)

    return _in_world(overlay, name, call)


def _changing_two(overlay: FileOverlay, name: str) -> Function:
    def call(system: Any, src: Any, dst: Any, *args: Any, **options: Any) -> Any:
        return overlay.change_two(name, system, src, dst, *args, **options)

    return _in_world(overlay, name, call)


def _without_argument(overlay: FileOverlay, name: str) -> Function:
    def call(system: Any) -> Any:
        return os.fsencode(system.getcwd()) if name == "getcwdb" else getattr(system, name)()

    return _in_world(overlay, name, call)


def _constant(overlay: FileOverlay, name: str, *, value: object) -> Function:
    def call(number: int, *_: Any, **__: Any) -> Any:
        overlay.owner(number).file_of(number)
        return value

    return _at_descriptor(overlay, name, call)


def _refused(overlay: FileOverlay, name: str, reason: str) -> Function:
    real = overlay.real[name]

    def call(*args: Any, **options: Any) -> Any:
        system = overlay.system()
        target = args[0] if args else None
        if system is None or (isinstance(target, int) and target < FIRST_DESCRIPTOR):
            return real(*args, **options)
        if reason:
            raise Unsupported(f"os.{name.rstrip('_')} cannot be used in a world: {reason}")
        raise failure(errno.ENOTSUP)

    return named_like(call, overlay.real[name])


# --------------------------------------------------------------------------------------------------- single functions


def _sendfile(overlay: FileOverlay) -> Function:
    real = overlay.real["sendfile"]

    def sendfile(out_fd: int, in_fd: int, offset: int | None, count: int, *args: Any, **options: Any) -> int:
        if not overlay.active or max(out_fd, in_fd) < FIRST_DESCRIPTOR:
            return int(real(out_fd, in_fd, offset, count, *args, **options))
        # The library copies by `read` and `write` after this error.
        if out_fd < FIRST_DESCRIPTOR or not overlay.owner(out_fd).owns(out_fd):
            raise failure(errno.ENOTSOCK)
        return _copied(overlay, in_fd, out_fd, count, offset, None)

    return named_like(sendfile, overlay.real["sendfile"])


def _copy_file_range(overlay: FileOverlay) -> Function:
    real = overlay.real["copy_file_range"]

    def copy_file_range(
        src: int, dst: int, count: int, offset_src: int | None = None, offset_dst: int | None = None
    ) -> int:
        if not overlay.active or max(src, dst) < FIRST_DESCRIPTOR:
            return int(real(src, dst, count, offset_src, offset_dst))
        if dst < FIRST_DESCRIPTOR:
            raise failure(errno.EXDEV)
        return _copied(overlay, src, dst, count, offset_src, offset_dst)

    return named_like(copy_file_range, overlay.real["copy_file_range"])


def _copied(overlay: FileOverlay, source: int, target: int, count: int, at: int | None, to: int | None) -> int:
    """Copy bytes to a simulated file from a simulated or a real one; return their count."""
    system = overlay.owner(target)
    if source >= FIRST_DESCRIPTOR:
        return system.copy_range(source, target, count, at, to)
    real = overlay.real
    data = real["read"](source, count) if at is None else real["pread"](source, count, at)
    return system.write(target, data) if to is None else system.pwrite(target, data, to)


def _fcntl(overlay: FileOverlay) -> Function:
    def call(number: int, cmd: int, *_: Any) -> Any:
        file = overlay.owner(number).file_of(number)
        if cmd in OPEN_STATUS:
            return file.flags & (os.O_ACCMODE | os.O_APPEND) if cmd == fcntl.F_GETFL else fcntl.FD_CLOEXEC
        if cmd in SET_STATUS:
            return 0
        raise failure(errno.EINVAL)

    return _at_descriptor(overlay, "fcntl", call)


def _ioctl(*_: Any, **__: Any) -> Any:
    raise failure(errno.EOPNOTSUPP)


def _mapping(overlay: FileOverlay) -> type:
    """Return a class like `mmap.mmap` that copies a simulated file for reading, and refuses to write to one."""
    real: Any = overlay.real["mmap"]

    class _Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

    def new(_: type, fileno: int, length: int, *args: Any, **options: Any) -> Any:
        if not overlay.active or fileno < FIRST_DESCRIPTOR:
            return real(fileno, length, *args, **options)
        if options.get("access") != mmap.ACCESS_READ and options.get("prot") != mmap.PROT_READ:
            raise Unsupported(
                "a simulated file cannot be mapped for writing; map it with access=mmap.ACCESS_READ, or use os.pwrite"
            )
        offset = options.get("offset", 0)
        data = overlay.owner(fileno).mapped(fileno)[offset:]
        data = data[:length] if length else data
        if not data:
            raise ValueError("cannot mmap an empty file")
        found = real(-1, len(data))
        found.write(data)
        found.seek(0)
        return found

    return _Kind("mmap", (), {"__new__": new, "__doc__": real.__doc__})


def _temporary(overlay: FileOverlay) -> list[tuple[Any, str, Any]]:
    """Return the replacements of `tempfile`: names that a seed repeats, in the simulated `/tmp`."""
    module: Any = tempfile
    names, directory = module._get_candidate_names, module._gettempdir

    def candidates() -> Iterator[str]:
        system = overlay.system()
        return names() if system is None else iter(system.temporary_name, "")

    def place() -> str:
        return str(directory()) if overlay.system() is None else "/tmp"  # noqa: S108 - a simulated directory

    return [(module, "_get_candidate_names", candidates), (module, "_gettempdir", place)]


def _databases(overlay: FileOverlay) -> list[tuple[Any, str, Any]]:
    """Return the replacement of `sqlite3.connect`, which keeps its files in the world."""
    with contextlib.suppress(ImportError):
        import sqlite3  # noqa: PLC0415 - Python may have been built without it

        real = sqlite3.connect

        def connect(database: Any, *args: Any, **options: Any) -> Any:
            text = os.fsdecode(database)
            if overlay.system() is None or not text or ":memory:" in text or "mode=memory" in text:
                return real(database, *args, **options)
            if options.get("uri") or len(args) > FACTORY or "factory" in options:
                raise Unsupported(
                    f"the database {text} cannot be opened in a world by a URI or a factory: name its path alone"
                )
            from stablecast.lab.world.databases import FileConnection  # noqa: PLC0415 - see above

            return FileConnection.open_in(Path(text), *args, **options)

        return [(sqlite3, "connect", named_like(connect, real))]
    return []
