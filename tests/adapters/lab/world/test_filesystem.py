"""The simulated file system behaves like the real one: the same calls have the same results and errors."""

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stablecast.lab.world.disk import FIRST_DESCRIPTOR, MILLISECOND, SimulatedDisk
from stablecast.lab.world.filesystem import FileSystem
from tests.adapters.lab.world.support import Clock, new_file_system
from tests.adapters.store.journal.support import FAST_DIRECTORY

NAMES = ("a", "b", "d", "d/a", "d/e", "l", "a/", "d/", ".", "d/..", "d/e/../a", "missing/a", "n" * 300, "l/a", "//b")
FLAGS = (os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW)
MODES = ("r", "w", "a", "x", "r+", "w+", "a+", "x+")
BLOCK = st.binary(max_size=40)
NAME = st.sampled_from(NAMES)
SHORT_NAME = NAME.filter(lambda name: len(name) < 100)
"""Two paths may both be wrong, and Linux looks at the length of the second name last."""
FD = st.integers(0, 5)
OFFSET = st.integers(-1, 70)

Call = tuple[Any, ...]

CALLS: st.SearchStrategy[Call] = st.one_of(
    st.tuples(
        st.just("open"),
        NAME,
        st.tuples(st.sampled_from((os.O_RDONLY, os.O_WRONLY, os.O_RDWR)), st.sets(st.sampled_from(FLAGS))),
    ),
    st.tuples(st.just("open"), NAME, st.just((os.O_RDWR, {os.O_CREAT}))),
    st.tuples(st.just("close"), FD),
    st.tuples(st.just("dup"), FD),
    st.tuples(st.just("read"), FD, st.integers(0, 60)),
    st.tuples(st.just("pread"), FD, st.integers(0, 60), OFFSET),
    st.tuples(st.just("write"), FD, BLOCK),
    st.tuples(st.just("pwrite"), FD, BLOCK, OFFSET),
    st.tuples(st.just("pwritev"), FD, st.lists(BLOCK, min_size=1, max_size=3), st.integers(0, 70)),
    st.tuples(st.just("lseek"), FD, OFFSET, st.sampled_from((os.SEEK_SET, os.SEEK_CUR, os.SEEK_END))),
    st.tuples(st.just("ftruncate"), FD, OFFSET),
    st.tuples(st.just("posix_fallocate"), FD, OFFSET, st.integers(0, 50)),
    st.tuples(st.just("fstat"), FD),
    st.tuples(st.just("fdatasync"), FD),
    st.tuples(st.sampled_from(("unlink", "rmdir", "mkdir", "listdir", "readlink", "stat", "lstat")), NAME),
    st.tuples(st.just("mkdir"), st.sampled_from(("d", "d/e"))),
    st.tuples(st.just("truncate"), NAME, OFFSET),
    st.tuples(st.sampled_from(("rename", "replace", "link")), SHORT_NAME, SHORT_NAME),
    st.tuples(st.just("symlink"), st.sampled_from(("a", "d", "d/a", "l", "missing", "../b")), NAME),
    st.tuples(st.just("access"), NAME, st.sampled_from((os.F_OK, os.R_OK))),
    st.tuples(st.just("file"), NAME, st.sampled_from(MODES), st.sampled_from(("", "b")), st.sampled_from((-1, 1, 7))),
)


def shown(value: object) -> object:
    """Return the part of a result that both systems have."""
    if isinstance(value, os.stat_result):
        return value.st_mode, value.st_nlink, value.st_size if value.st_mode & 0o100000 else 0
    return value


class Caller:
    """Makes the same calls in one system; a descriptor is named by its place."""

    def __init__(self, system: Any, opener: Callable[..., Any], base: str) -> None:
        self.system = system
        self.opener = opener
        self.base = base
        self.fds: list[int] = []

    def call(self, call: Call) -> object:
        """The result, or the number of the error."""
        try:
            return shown(self._call(*call))
        except OSError as error:
            return "errno", errno.errorcode[error.errno or 0]

    def close_all(self) -> None:
        for fd in self.fds:
            self.system.close(fd)

    def _call(self, name: str, *arguments: Any) -> object:
        match name:
            case "open":
                access, flags = arguments[1]
                self.fds.append(self.system.open(f"{self.base}/{arguments[0]}", access | sum(flags)))
                return len(self.fds)
            case "file":
                return self._use_file(*arguments)
            case "rename" | "replace" | "link":
                return getattr(self.system, name)(*(f"{self.base}/{path}" for path in arguments))
            case "symlink":
                return self.system.symlink(arguments[0], f"{self.base}/{arguments[1]}")
        if isinstance(arguments[0], str):
            found = getattr(self.system, name)(f"{self.base}/{arguments[0]}", *arguments[1:])
            return sorted(found) if name == "listdir" else found
        fd = self.fds[arguments[0] % len(self.fds)] if self.fds else 999_999
        if name == "close":
            self.fds = [other for other in self.fds if other != fd]
        if name == "lseek" and stat.S_ISDIR(self.system.fstat(fd).st_mode):
            return None  # File systems differ in what the end of a directory is.
        found = getattr(self.system, name)(fd, *arguments[1:])
        if name == "dup":
            self.fds.append(found)
            return len(self.fds)
        return found

    def _use_file(self, path: str, mode: str, kind: str, buffering: int) -> object:
        buffering = 7 if kind and buffering == 1 else buffering  # Only text has lines.
        with self.opener(f"{self.base}/{path}", mode + kind, buffering, None if kind else "latin-1") as file:
            done: list[object] = [file.mode, file.readable(), file.writable(), file.seekable(), file.tell()]
            if file.writable():
                done.append(file.write(b"one\r\ntwo" if kind else "eins\nzwei\n"))
                file.flush()
                done += [file.tell(), os.fspath(file.name)]
            if file.readable():
                done += [file.seek(0), file.readline(), file.read()]
            if file.writable():
                done += [file.seek(2), file.truncate()]
            return done


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(CALLS, max_size=40))
@example([("open", "d", (os.O_RDWR, {os.O_CREAT})), ("link", "a", "d/a")])  # What is missing comes before a wrong way.
def test_the_same_calls_have_the_same_results(calls: list[Call]) -> None:
    with tempfile.TemporaryDirectory(dir=FAST_DIRECTORY) as outer:
        base = f"{outer}/base"  # A link may lead to its parent.
        Path(base).mkdir()
        system = new_file_system()
        system.disk.make_directories(base)
        Path(base).chmod(0o755)
        real, simulated = Caller(os, open, base), Caller(system, system.open_file, base)
        for call in calls:
            assert simulated.call(call) == real.call(call), call
        real.close_all()


def test_descriptors_are_never_used_again() -> None:
    system = new_file_system()
    first = system.open("/f", os.O_CREAT | os.O_RDWR)
    system.close(first)
    second = system.open("/f", os.O_RDWR)
    assert FIRST_DESCRIPTOR <= first < second
    with pytest.raises(OSError, match="Bad file descriptor"):
        system.read(first, 1)


def test_an_open_file_outlives_its_name() -> None:
    system = new_file_system()
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    system.write(fd, b"here")
    system.unlink("/f")
    assert system.disk.used == 4
    assert (system.pread(fd, 9, 0), system.fstat(fd).st_nlink, system.exists("/f")) == (b"here", 0, False)
    system.close(fd)
    assert system.disk.used == 0


def test_a_lock_belongs_to_an_open_file() -> None:
    system = new_file_system()
    first, second = (system.open("/lock", os.O_CREAT | os.O_RDWR) for _ in range(2))
    system.flock(first, fcntl.LOCK_EX)
    with pytest.raises(BlockingIOError):
        system.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    copy = system.dup(first)
    system.close(first)
    with pytest.raises(BlockingIOError):
        system.flock(second, fcntl.LOCK_SH | fcntl.LOCK_NB)
    system.close(copy)
    system.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    system.flock(second, fcntl.LOCK_SH)
    third = system.open("/lock", os.O_RDWR)
    system.flock(third, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_a_lock_is_awaited() -> None:
    clock = Clock()
    system = new_file_system(clock)
    first, second = (system.open("/lock", os.O_CREAT | os.O_RDWR) for _ in range(2))
    system.flock(first, fcntl.LOCK_EX)
    clock.at(clock.now + 50 * MILLISECOND, lambda: system.close(first))
    began = clock.now
    system.flock(second, fcntl.LOCK_EX)
    assert 50 * MILLISECOND <= clock.now - began <= 52 * MILLISECOND


def test_times_are_virtual() -> None:
    clock = Clock()
    system = new_file_system(clock)
    clock.now = 5_000_000_001
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    clock.now = 7_000_000_002
    system.write(fd, b"x")
    found = system.stat("/f")
    assert (found.st_atime_ns, found.st_mtime_ns, found.st_mtime) == (5_000_000_001, 7_000_000_002, 7.000000002)
    system.utime("/f", ns=(1, 2))
    assert (system.stat("/f").st_atime_ns, system.stat("/f").st_mtime_ns) == (1, 2)


def test_listings_depend_on_the_seed_only() -> None:
    def listing(seed: int) -> list[str]:
        system = FileSystem(SimulatedDisk(Clock(), Random(seed)))
        for name in map(str, range(20)):
            system.mkdir(f"/{name}")
        return system.listdir("/")

    assert listing(1) == listing(1)
    assert listing(1) != listing(2)
    assert sorted(listing(1)) == sorted(listing(2))


def test_processes_of_a_host_share_its_disk() -> None:
    first = new_file_system()
    second = FileSystem(first.disk)
    with first.open_file("/f", "w") as file:
        file.write("shared")
        file.flush()
        with second.open_file("/f") as other:
            assert other.read() == "shared"


def test_a_killed_process_leaves_the_page_cache() -> None:
    system = new_file_system()
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    system.flock(fd, fcntl.LOCK_EX)
    system.write(fd, b"unsynced")
    file = system.open_file("/buffered", "wb")
    file.write(b"never flushed")
    system.kill()
    file.close()
    for call in (lambda: system.write(fd, b"x"), lambda: system.unlink("/f")):
        with pytest.raises(OSError, match=r"Bad file descriptor|Input/output error"):
            call()
    restarted = FileSystem(system.disk)
    with restarted.open_file("/f", "rb") as again, restarted.open_file("/buffered", "rb") as empty:
        restarted.flock(again.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert (again.read(), empty.read()) == (b"unsynced", b"")


def test_relative_paths_begin_at_the_working_directory() -> None:
    system = new_file_system()
    system.mkdir("/d")
    system.mkdir("/d/e")
    system.chdir("/d/e")
    assert system.getcwd() == "/d/e"
    system.open("../f", os.O_CREAT)
    assert system.exists("/d/f")
    directory = system.open("/d", os.O_RDONLY | os.O_DIRECTORY)
    assert system.stat("f", dir_fd=directory).st_ino == system.stat("/d/f").st_ino
    assert sorted(system.listdir(directory)) == ["e", "f"]


def test_a_mapping_is_the_bytes(tmp_path: Path) -> None:
    system = new_file_system()
    with system.open_file("/f", "w+b") as file:
        file.write(b"mapped")
        file.flush()
        assert system.mapped(file.fileno()) == b"mapped"
    assert not list(tmp_path.iterdir())
