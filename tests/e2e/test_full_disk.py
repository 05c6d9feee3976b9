"""A daemon of two stores, one on a small file system that is full: real processes, a real lack of room."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import attrs
import pytest

from tests.support.daemons import until
from tests.support.program import PROGRAM, Program, running

MIB = 1 << 20
SIZE = 12 * MIB
ROOM = 2 * MIB
"""Of the file system, and the free bytes below which its store warns."""
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
    """Why there can be no file system of our own here; empty: there can."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "mounting needs root and the program `unshare`"
    command = ("unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"mounting is not permitted: {done.stderr.strip()}" if done.returncode else ""


@attrs.frozen
class Daemon:
    """The daemon; `small` is where its first store writes, as seen from outside of its mount namespace."""

    program: Program
    stores: list[str]
    monitor: str
    small: Path
    log: Path

    def shown(self, path: str) -> Any:
        """What the monitor answers."""
        request = urllib.request.Request(f"http://{self.monitor}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request) as answer:
            text = answer.read().decode()
            return json.loads(text) if path.startswith("/api") else text

    def store(self, index: int) -> dict[str, Any]:
        """A store."""
        found: dict[str, Any] = self.shown(f"/api/stores/{index}")
        return found

    def codes(self, index: int) -> set[str]:
        """What is to be said of a store."""
        return {finding["code"] for finding in self.store(index)["findings"]}

    def leave(self, free: int) -> None:
        """Fill the small file system but for so many bytes."""
        ballast = self.small / "ballast"
        ballast.unlink(missing_ok=True)
        found = os.statvfs(self.small)
        ballast.write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - free)))


@contextmanager
def daemon(directory: Path) -> Iterator[Daemon]:
    """Two stores, the first on a file system of `SIZE`."""
    for name in ("small", "large"):
        (directory / name).mkdir()
    path = directory / "stores.toml"
    (directory / "token").write_text(TOKEN)
    path.write_text(CONFIG.format(directory=directory, room=ROOM))
    script = f'mount -t tmpfs -o size={SIZE} tmpfs "$0" && exec "$@"'
    inside = ("unshare", "-m", "sh", "-c", script, str(directory / "small"), *PROGRAM)
    with running("store", path, "--new", "--json", program=inside) as program:
        stores = [program.said()["address"] for _ in range(2)]
        small = Path(f"/proc/{program.process.pid}/root{directory}/small")
        yield Daemon(program, stores, program.said()["monitor"], small, directory / "log")


@contextmanager
def sender(relay: str, store: str, count: int) -> Iterator[Program]:
    """`stablecast send` of so many messages of 1000 bytes; it says so when all are stable."""
    words = ("send", "orders", "--resolver", relay, "--store", store, "--session-id", "1", "--linger", "0", "--json")
    with NamedTemporaryFile("w") as file:
        file.write(("x" * 1000 + "\n") * count)
        file.flush()
        with running(*words, "--file", file.name) as program:
            yield program


@pytest.fixture
def relay() -> Iterator[str]:
    with running("lbmrd", "--listen", "127.0.0.1:0", "--json") as program:
        yield f"127.0.0.1:{program.said()['port']}"


def test_a_full_disk_parks_its_store_alone_and_room_brings_it_back(relay: str, tmp_path: Path) -> None:
    if why := reason_to_skip():
        pytest.skip(why)
    with daemon(tmp_path) as found:
        with sender(relay, found.stores[0], 10) as first:
            assert first.said()["stable"] == 10
        found.leave(ROOM // 2)
        until(lambda: "room-low" in found.codes(0))
        assert found.store(0)["failure"] == "", "it warns before there is no room"
        with sender(relay, found.stores[0], 3000) as stuck:
            until(lambda: found.store(0)["failure"] != "")
            stuck.process.kill()
        assert "No space left on device" in found.store(0)["failure"]
        assert 'stablecast_store_failed{store="full"} 1' in found.shown("/metrics")
        assert 'stablecast_store_failed{store="fine"} 0' in found.shown("/metrics")
        with sender(relay, found.stores[1], 20) as other:
            assert other.said()["stable"] == 20, "the other store goes on"
        found.leave(SIZE)
        until(lambda: found.store(0)["failure"] == "")
        with sender(relay, found.stores[0], 10) as again:
            told = again.said()
            assert told["stable"] == 10
            assert told["first"] >= 10, "what was stable before is still there"
        found.program.interrupt()
        assert found.program.end()[::2] == (0, "")
        log = found.log.read_text()
        for code in ("room-low", "disk-failed", "parked", "room-back", "returned"):
            assert f" full: {code}: " in log, log
            assert f" fine: {code}: " not in log


def test_an_operator_brings_a_parked_store_back(relay: str, tmp_path: Path) -> None:
    """Here with little room: fewer bytes than the limit, and enough to go on for a while."""
    if why := reason_to_skip():
        pytest.skip(why)
    with daemon(tmp_path) as found:
        found.leave(ROOM // 4)
        with sender(relay, found.stores[0], 3000) as stuck:
            until(lambda: found.store(0)["failure"] != "")
            stuck.process.kill()
        found.leave(ROOM // 2)
        where = f"http://{found.monitor}/stores/0"
        with running("store", "resume", where, "--token-file", tmp_path / "token") as command:
            assert command.end()[:2] == (0, "The store is started again\n")
        until(lambda: found.store(0)["failure"] == "")
        with running("store", "resume", where, "--token-file", tmp_path / "token") as command:
            status, _, errors = command.end()
            assert (status, "the store is not parked" in errors) == (1, True)
        with sender(relay, found.stores[0], 10) as again:
            assert again.said()["stable"] == 10
