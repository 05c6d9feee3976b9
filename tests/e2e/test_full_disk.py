"""A daemon of two stores, of which one is on a small file system that becomes full: real processes, a real disk."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

import attrs
import pytest

from tests.support.daemons import Daemon, until
from tests.support.program import PROGRAM, Program, running

MIB = 1 << 20
SIZE = 12 * MIB
ROOM = 2 * MIB
"""Bytes of the file system, and the free bytes below which its store warns."""
TOKEN = "a-token-that-nobody-guesses"
CONFIG = """
[daemon]
log = "{directory}/log"
web-monitor = {{ address = "127.0.0.1:0", permission = "read-write", token-file = "{directory}/token" }}
[[store]]
name = "full"
port = 0
interface = "127.0.0.1"
options = {{ disk-cache-directory = "{directory}/small", disk-state-directory = "{directory}/small" }}
limits = {{ room-bytes = {room} }}
[[store.topic]]
pattern = "."
type = "PCRE"
[[store]]
name = "fine"
port = 0
interface = "127.0.0.1"
options = {{ disk-cache-directory = "{directory}/large", disk-state-directory = "{directory}/large" }}
limits = {{ room-bytes = {room} }}
[[store.topic]]
pattern = "."
type = "PCRE"
"""


def reason_to_skip() -> str:
    """Return why this machine permits no file system of our own, or an empty string if it does."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "mounting needs root and the program `unshare`"
    command = ("unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"mounting is not permitted: {done.stderr.strip()}" if done.returncode else ""


@attrs.frozen
class SmallDisk:
    """The file system of the first store, mounted at `place` as seen from outside its mount namespace."""

    place: Path

    def leave(self, free: int) -> None:
        """Fill the file system up to `free` bytes."""
        ballast = self.place / "ballast"
        ballast.unlink(missing_ok=True)
        found = os.statvfs(self.place)
        ballast.write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - free)))


def failure(daemon: Daemon) -> str:
    """Return the failure of the first store, as the monitor shows it."""
    return str(daemon.get("/api/stores/0")["failure"])


@contextmanager
def two_stores(directory: Path) -> Iterator[tuple[Daemon, SmallDisk]]:
    """Run a daemon of two stores, the first on a file system of `SIZE` bytes."""
    for name in ("small", "large"):
        (directory / name).mkdir()
    path = directory / "stores.toml"
    (directory / "token").write_text(TOKEN)
    path.write_text(CONFIG.format(directory=directory, room=ROOM))
    script = f'mount -t tmpfs -o size={SIZE} tmpfs "$0" && exec "$@"'
    inside = ("unshare", "-m", "sh", "-c", script, str(directory / "small"), *PROGRAM)
    with running("store", path, "--new", "--json", program=inside) as program:
        stores = [program.json_line()["address"] for _ in range(2)]
        small = Path(f"/proc/{program.process.pid}/root{directory}/small")
        monitor = program.json_line()["monitor"]
        yield Daemon(program, stores, monitor, directory / "log", TOKEN), SmallDisk(small)


@contextmanager
def sender(relay: str, store: str, count: int) -> Iterator[Program]:
    """Run `stablecast send` with `count` messages of 1000 bytes. It prints a result when all are stable."""
    words = ("send", "orders", "--resolver", relay, "--store", store, "--session-id", "1", "--linger", "0", "--json")
    with NamedTemporaryFile("w") as file:
        file.write(("x" * 1000 + "\n") * count)
        file.flush()
        with running(*words, "--file", file.name) as program:
            yield program


def test_a_full_disk_parks_only_its_own_store_until_there_is_room(relay: str, tmp_path: Path) -> None:
    if why := reason_to_skip():
        pytest.skip(why)
    with two_stores(tmp_path) as (daemon, disk):
        with sender(relay, daemon.stores[0], 10) as first:
            assert first.json_line()["stable"] == 10
        disk.leave(ROOM // 2)
        until(lambda: "room-low" in daemon.codes(0))
        assert failure(daemon) == "", "the warning comes before the disk is full"
        with sender(relay, daemon.stores[0], 3000) as stuck:
            until(lambda: failure(daemon) != "")
            stuck.process.kill()
        assert "No space left on device" in failure(daemon)
        assert 'stablecast_store_failed{store="full"} 1' in daemon.get("/metrics")
        assert 'stablecast_store_failed{store="fine"} 0' in daemon.get("/metrics")
        with sender(relay, daemon.stores[1], 20) as other:
            assert other.json_line()["stable"] == 20, "the other store continues"
        disk.leave(SIZE)
        until(lambda: failure(daemon) == "")
        with sender(relay, daemon.stores[0], 10) as again:
            result = again.json_line()
            assert result["stable"] == 10
            assert result["first"] >= 10, "the messages that were stable before are still there"
        daemon.program.interrupt()
        assert daemon.program.end()[::2] == (0, "")
        log = daemon.log.read_text()
        for code in ("room-low", "disk-failed", "parked", "room-back", "returned"):
            assert f" full: {code}: " in log, log
            assert f" fine: {code}: " not in log


def test_an_operator_brings_a_parked_store_back(relay: str, tmp_path: Path) -> None:
    """There is little room here: fewer bytes than the limit, but enough to continue for a while."""
    if why := reason_to_skip():
        pytest.skip(why)
    with two_stores(tmp_path) as (daemon, disk):
        disk.leave(ROOM // 4)
        with sender(relay, daemon.stores[0], 3000) as stuck:
            until(lambda: failure(daemon) != "")
            stuck.process.kill()
        disk.leave(ROOM // 2)
        where = f"http://{daemon.monitor}/stores/0"
        with running("store", "resume", where, "--token-file", tmp_path / "token") as command:
            assert command.end()[:2] == (0, "The store was restarted\n")
        until(lambda: failure(daemon) == "")
        with running("store", "resume", where, "--token-file", tmp_path / "token") as command:
            status, _, errors = command.end()
            assert (status, "the store is not parked" in errors) == (1, True)
        with sender(relay, daemon.stores[0], 10) as again:
            assert again.json_line()["stable"] == 10
