"""The process of a daemon: pidfile, another user, no terminal."""

import errno
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.runtime import machine
from stablecast.store import process
from stablecast.store.process import Pidfile, ProcessError, become
from tests.support.machine import replace
from tests.support.processes import alive


@pytest.mark.rows("P-803")
def test_a_pidfile_names_the_process_and_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    pidfile = Pidfile.write(path)
    assert path.read_text() == f"{os.getpid()}\n"
    pidfile.remove()
    assert not path.exists()
    pidfile.remove()


@pytest.mark.rows("P-803")
def test_a_pidfile_of_a_daemon_that_runs_is_respected(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    held = Pidfile.write(path)
    with pytest.raises(ProcessError, match=f"process {os.getpid()} runs and has the pidfile {path}"):
        Pidfile.write(path)
    assert path.read_text() == f"{os.getpid()}\n"
    held.remove()
    Pidfile.write(path).remove()


@pytest.mark.rows("P-803")
@pytest.mark.parametrize("content", ["", "many", "-1", "4194305", "1", f"{os.getppid()}"])
def test_a_pidfile_that_was_left_behind_is_taken_whoever_has_its_number_now(content: str, tmp_path: Path) -> None:
    """After a power cut the number belongs to any program, and in a container often to one that runs."""
    path = tmp_path / "pid"
    path.write_text(content)
    held = Pidfile.write(path)
    assert path.read_text() == f"{os.getpid()}\n"
    held.remove()


def test_a_pidfile_of_another_daemon_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    held = Pidfile.write(path)
    path.unlink()
    other = Pidfile.write(path)
    held.remove()
    assert path.exists()
    other.remove()
    assert not path.exists()


def test_a_pidfile_that_cannot_be_removed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pidfile = Pidfile.write(tmp_path / "pid")

    def forbidden(_: Path) -> None:
        raise PermissionError

    replace(monkeypatch, "files", remove=forbidden)
    pidfile.remove()
    assert (tmp_path / "pid").exists()


@pytest.mark.rows("P-804")
def test_a_process_without_root_keeps_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "setuid", lambda _: pytest.fail("not allowed"))
    become(0, 0, [])


def test_without_uid_and_gid_the_user_stays() -> None:
    become(None, None, [])


@pytest.mark.rows("P-804")
@pytest.mark.parametrize(("uid", "gid"), [(65_534, 65_533), (65_534, None), (None, 65_533)])
def test_root_becomes_another_user(
    uid: int | None, gid: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group first, for a user without rights cannot change it."""
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("fchown", "setgroups", "setgid", "setuid"):
        monkeypatch.setattr(os, name, lambda *given, name=name: calls.append((name, *given[-2:])))
    log = tmp_path / "log"
    log.touch()
    become(uid, gid, [log])
    groups = [] if gid is None else [("setgroups", [gid]), ("setgid", gid)]
    users = [] if uid is None else [("setuid", uid)]
    owner = ("fchown", -1 if uid is None else uid, -1 if gid is None else gid)
    assert calls == [owner, *groups, *users]


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_root_gives_away_no_file_that_a_link_leads_to(
    make: Callable[[Path, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of a daemon may write to the directory of its log, and could put a link there."""
    target = tmp_path / "shadow"
    target.touch()
    make(tmp_path / "log", target)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", lambda *_: pytest.fail("given away"))
    with pytest.raises(ProcessError):
        become(65_534, None, [tmp_path / "log"])


def test_a_pidfile_does_not_overwrite_what_a_link_leads_to(tmp_path: Path) -> None:
    target = tmp_path / "shadow"
    target.write_text("secret")
    (tmp_path / "pid").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        Pidfile.write(tmp_path / "pid")
    assert target.read_text() == "secret"


def test_a_refusal_of_the_system_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "setuid", refused)
    with pytest.raises(ProcessError, match="cannot become user 7 and group None: Invalid argument; correct"):
        become(7, None, [])


@pytest.mark.rows("P-804")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_process_really_becomes_nobody_who_must_be_able_to_read_it() -> None:
    program = """
import os
from stablecast.store.process import ProcessError, become
try:
    become(65534, 65534, [])
    print("yes")
except ProcessError as error:
    print(error)
print(os.getresuid())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    told, who = done.stdout.splitlines()
    assert who == "(65534, 65534, 65534)"
    assert told == "yes" or re.fullmatch("user 65534 cannot read .+, which runs here: install it where .+", told)


def test_a_user_who_cannot_read_the_programs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "setuid", lambda _: None)
    monkeypatch.setattr(os, "access", lambda _, __: False)
    with pytest.raises(ProcessError, match=r"cannot read .*, which runs here: install it"):
        become(7, None, [])


DETACHED = """
import os, signal, sys
from stablecast.runtime import machine
detached = machine.process.detach()
if isinstance(detached, int):
    print("parent", detached, flush=True)
    sys.exit(detached)
print("child", flush=True)
if sys.argv[2] == "fails":
    sys.exit(3)
detached.ready()
ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
open(sys.argv[1], "w").write(f"{os.getpid()} {os.getsid(0)} {os.isatty(0)} {ignored}")
print("nobody reads this")
"""


def detached(told: Path, how: str) -> "subprocess.CompletedProcess[str]":
    """The output and exit status of the process that detaches a daemon."""
    command = [sys.executable, "-c", DETACHED, str(told), how]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.rows("P-704")
def test_a_detached_daemon_leaves_its_terminal_and_its_parent_ends(tmp_path: Path) -> None:
    """A reader of the parent's output is not held up by the child."""
    told = tmp_path / "told"
    done = detached(told, "works")
    assert (done.returncode, done.stdout) == (0, "child\nparent 0\n")
    while not told.exists() or not told.read_text():
        pass
    number, session, terminal, ignored = told.read_text().split()
    assert (number, terminal, ignored) == (session, "False", "True")
    while alive(int(number)):
        pass


def test_a_daemon_that_fails_before_it_is_ready_fails_for_all_to_see(tmp_path: Path) -> None:
    done = detached(tmp_path / "told", "fails")
    assert (done.returncode, done.stdout) == (3, "child\nparent 3\n")


def test_a_daemon_uses_as_many_descriptors_as_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(256, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, asked: limits.append(asked))
    machine.process.raise_descriptor_limit()
    assert limits[-1] == (4096, 4096)
    assert 0 < process.descriptors_for_streams() < 4096 - process.RESERVED_DESCRIPTORS


def test_the_last_descriptors_are_not_for_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    lowest = os.dup(0)
    os.close(lowest)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (lowest + process.RESERVED_DESCRIPTORS, 4096))
    assert process.descriptors_for_streams() == 0

    def none(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, "open", none)
    assert process.descriptors_for_streams() == 0
