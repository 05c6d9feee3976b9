"""`stablecast store` and `stablecast lbmrd` as processes: ready, stopped, refused."""

import re
import resource
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.support.program import lbmrd, outcome, running, store

ROOM = 2_000_000
"""Bytes of a file that a small disk takes; what measures coverage needs some, too."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_store_says_that_it_is_ready_and_that_it_stopped(number: signal.Signals, tmp_path: Path) -> None:
    with running("store", tmp_path, "--listen", "127.0.0.1:0", "--new", "--json") as program:
        ready = program.json_line()
        address = ready["address"]
        assert ready == {"ready": True, "address": address, "directory": str(tmp_path)}
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
        assert set(modes.values()) <= {0o600, 0o700}, modes
        program.interrupt(number)
        counted = {"clients": 0, "oddities": {}, "events": {}, "sessions": {}}
        assert program.json_line() == {"stopped": True, "address": address, **counted}
        assert program.end() == (0, "", "")


def test_a_store_for_people(tmp_path: Path) -> None:
    with running("store", tmp_path, "--listen", "127.0.0.1:0", "--new") as program:
        assert program.line().startswith("store ready to accept registrations at 127.0.0.1:")
        program.interrupt()
        assert program.end() == (0, "", "")


def test_a_store_that_may_have_lost_its_memory_says_so_instead_of_ready(tmp_path: Path) -> None:
    """Formal design, 7.6: it waits before it grants anything; who knows better says `--new`."""
    with running("store", tmp_path, "--listen", "127.0.0.1:0") as program:
        line = program.line()
        program.interrupt()
        status, out, err = program.end()
    assert re.fullmatch(r"store at 127\.0\.0\.1:\d+ grants no registration for \d+ s", line)
    assert (status, out) == (0, "")
    waits, votes = err.splitlines()
    assert re.fullmatch(
        re.escape(str(tmp_path))
        + r" holds no journal, or a damaged one: no registration is granted for \d+ s, because "
        r"clients may count on earlier ones\. If this is a new store, stop it and start it with --new",
        waits,
    )
    assert votes == (
        f"{tmp_path} may be a replaced disk: the store has no vote about earlier messages of a source until that "
        "source announces itself"
    )


def test_a_store_that_waits_is_ready_when_it_grants_registrations(tmp_path: Path) -> None:
    arguments = ["--listen", "127.0.0.1:0", "-o", "source-activity-timeout=500", "-o", "receiver-activity-timeout=500"]
    with running("store", tmp_path, *arguments, "--json") as program:
        waiting = program.json_line()
        ready = program.json_line()
        assert (waiting["ready"], ready["ready"]) == (False, True)
        assert waiting["address"] == ready["address"]
        assert outcome("send", "orders", "--store", ready["address"], typed="one\n")[0] == 0


def test_a_sender_names_the_likely_cause_of_a_store_that_waits(tmp_path: Path) -> None:
    with running("store", tmp_path, "--listen", "127.0.0.1:0", "--json") as program:
        store_address = program.json_line()["address"]
        options = ["-o", "ume_registration_interval=100", "--timeout", "2"]
        status, _, err = outcome("send", "orders", "--store", store_address, *options, typed="one\n")
    assert status == 1
    assert (
        "although the connection is open. The store's log names the cause: a store that finds no journal waits" in err
    )
    assert "start a new store with --new" in err
    assert "start the stores" not in err


def test_options_that_are_not_followed_are_told_and_a_profile_is_taken(tmp_path: Path) -> None:
    """The guide's store has no memory to lose (formal design, 7.6): it grants at once."""
    arguments = ["--listen", "127.0.0.1:0", "--profile", "5.3", "-o", "repository-disk-max-write-async-cbs=2", "--json"]
    with running("store", tmp_path, *arguments) as program:
        program.json_line()
        program.interrupt()
        program.json_line()
        status, _, err = program.end()
    assert status == 0
    assert err == (
        "option repository-disk-max-write-async-cbs is not followed: there is one write at a time, for all "
        "waiting messages\n"
    )


def test_a_relay_says_that_it_is_ready_and_that_it_stopped() -> None:
    with running("lbmrd", "--listen", "127.0.0.1:0", "--json") as program:
        assert program.json_line().keys() == {"ready", "port"}
        program.interrupt()
        assert program.json_line()["stopped"] is True
        assert program.end() == (0, "", "")


def test_a_store_tells_what_a_crash_left_behind(tmp_path: Path) -> None:
    with store(tmp_path) as (_, address):
        assert outcome("send", "t", "--store", address, typed="one\n")[0] == 0
    (segment,) = tmp_path.glob("*.seg")
    whole = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(b"half a record")
    with store(tmp_path) as (program, _):
        program.interrupt()
        status, _, err = program.end()
    assert status == 0
    assert err == (
        f"{segment} ended in 13 bytes of an unfinished write at {whole}, which were cut; "
        "unless others shortened the file, nothing in them was reported stable\n"
    )


def test_host_names_may_stand_wherever_an_address_may(tmp_path: Path) -> None:
    """Listeners, stores and relays."""
    with store(tmp_path, listen="localhost:0") as (_, where), lbmrd("localhost:0") as (_, relay):
        assert where.startswith("127.0.0.1:")
        assert relay.startswith("localhost:")
        named = where.replace("127.0.0.1", "localhost")
        with running("receive", "orders", "--count", "1", "--resolver", relay, "--json") as receiver:
            words = ["--store", named, "--resolver", relay, "--session-id", "7", "--linger", "5"]
            assert outcome("send", "orders", *words, typed="one\n")[0] == 0
            assert receiver.line()
    assert "has no address" in outcome("store", tmp_path, "--listen", "no-such-host.invalid:0")[2]


@pytest.mark.parametrize("command", ["store", "lbmrd"])
def test_a_port_in_use(command: str, tmp_path: Path) -> None:
    directory = [tmp_path] if command == "store" else []
    with socket.socket() as stream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        taken = stream if command == "store" else datagrams
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        status, out, err = outcome(command, *directory, "--listen", f"127.0.0.1:{port}")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert f"port {port} on 127.0.0.1 is in use: stop " in err


@pytest.mark.parametrize("where", ["the command line", "the configuration"])
def test_certificates_that_are_missing(where: str, tmp_path: Path) -> None:
    """TLS is one setting, and a process that cannot have it does not go on without it."""
    config = tmp_path / "store.toml"
    told = f"TLS needs {tmp_path} to hold certificate.pem, key.pem and authority.pem: No such file or directory"
    if where == "the configuration":
        config.write_text(f'[daemon]\ntls = "{tmp_path}"\n')
        status, out, err = outcome("store", config)
        assert (status, out, err.splitlines()[-1]) == (1, "", f"stablecast: {told}")
    else:
        assert outcome("--tls", tmp_path, "store", tmp_path) == (1, "", f"stablecast: {told}\n")


def test_a_trace_that_cannot_be_written_frees_port_and_directory(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    status, out, err = outcome("store", tmp_path, "--listen", "127.0.0.1:0", "--trace", blocked)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert str(blocked) in err


def test_a_disk_that_takes_no_more_ends_the_store(tmp_path: Path) -> None:
    with store(tmp_path) as (program, address):
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (ROOM, ROOM))
        with running("send", "orders", "--store", address) as sender:
            sender.write(("x" * 50_000 + "\n") * (ROOM // 50_000 + 1))
            status, out, err = program.end()
    assert (status, out) == (1, "")
    assert err == (
        f"stablecast: the journal in {tmp_path} cannot be written: File too large; "
        "make room or replace the disk, then restart\n"
    )


WAITING = """
import os
import sys
from pathlib import Path
from threading import Event, current_thread
from stablecast.runtime.event_loop import run_loop
from stablecast.cli.daemons import serve
from stablecast.store.store import StoreSettings
from stablecast.store.journal import Disk, writer

BLOCKED = Path(sys.argv[3])

def sync(descriptor):
    if current_thread().name.startswith(sys.argv[2]) and BLOCKED.exists():
        os.write(1, b'{"syncing": true}\\n')  # whole, although the loop's thread may print now
        Event().wait()

writer.STEADY = 1
settings = StoreSettings("127.0.0.1:0", Path(sys.argv[1]), new=True, disk=Disk(sync=sync, short_ns=1 << 60))
run_loop(serve(settings, True))
"""
"""A store whose disk never answers the threads whose names begin so, once a file is there: a start syncs, too."""


def blockable(tmp_path: Path, thread: str) -> tuple[Path, str, Path]:
    """Return the arguments of `WAITING`: the store's directory, the thread, and the file that blocks its disk."""
    data = tmp_path / "data"
    data.mkdir()
    return data, thread, tmp_path / "blocked"


@pytest.mark.rows("P-708")
def test_a_second_interrupt_waits_for_nothing(tmp_path: Path) -> None:
    """Not even for a disk that never answers."""
    (tmp_path / "blocked").touch()
    with running(*blockable(tmp_path, "journal"), program=(sys.executable, "-c", WAITING)) as program:
        first = program.json_line()
        blocked = first == {"syncing": True}  # A new store syncs a record of its own, perhaps before it is ready.
        address = (program.json_line() if blocked else first)["address"]
        with running("send", "orders", "--store", address):
            assert blocked or program.json_line() == {"syncing": True}
            program.interrupt()
            while _listens(address):
                assert program.process.poll() is None
            program.interrupt()
            assert program.end() == (130, "", "")


@pytest.mark.rows("P-708")
def test_a_second_interrupt_does_not_wait_for_a_loop_that_flushes(tmp_path: Path) -> None:
    """A disk that never answers the loop's own thread."""
    (tmp_path / "blocked").touch()
    with running(*blockable(tmp_path, "store"), program=(sys.executable, "-c", WAITING)) as program:
        address = program.json_line()["address"]
        with running("send", "orders", "--store", address), running("send", "others", "--store", address):
            assert program.json_line() == {"syncing": True}
            program.interrupt()
            program.interrupt(signal.SIGTERM)  # two of a kind that come together are one
            assert program.end() == (130, "", "")


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except OSError:
        return False
    return True
