"""`stablecast up`: what it prints works, and nothing outlives it."""

import os
import re
import shlex
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest

from stablecast.cli import cluster_ports
from stablecast.runtime import datagrams, ports
from tests.support.processes import alive, children, until
from tests.support.program import PROGRAM, running
from tests.support.tree import ROOT


def test_the_commands_that_it_prints_work(tmp_path: Path) -> None:
    with running("up", "--stores", "2", "--directory", tmp_path / "data") as cluster:
        first, second = (shlex.split(cluster.line()) for _ in range(2))
        receive, send = first[first.index("receive") :], second[second.index("send") :]
        assert first[: -len(receive)] == second[: -len(send)]
        beside = [str(Path(sys.executable).with_name("stablecast"))]
        assert first[: -len(receive)] in (["stablecast"], beside, list(PROGRAM))
        with running(*receive) as receiver, running(*send) as sender:
            sender.process.communicate("hello\nagain\n")
            assert sender.process.returncode == 0
            assert [receiver.line(), receiver.line()] == ["hello", "again"]
        cluster.interrupt()
        status, _, err = cluster.end()
        assert status == 0
        assert "interrupt to stop" in err
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"store-0", "store-1", "ports.json"}


def test_the_program_that_it_prints_works_again_after_a_restart(tmp_path: Path) -> None:
    """Its ports are those of the last run, so a program that names them goes on."""
    program = tmp_path / "program.py"
    for run in range(2):
        with running("up", "--stores", "1", "--directory", tmp_path / "data") as cluster:
            lines = [cluster.line()]
            while lines[-1] != "asyncio.run(main())":
                lines.append(cluster.line())
            text = "\n".join(lines[lines.index("import asyncio") :])
            if run:
                assert text == program.read_text(), "the ports changed"
            program.write_text(text)
            with running(program=(sys.executable, "-X", "dev", str(program))) as snippet:
                assert snippet.line().startswith("<Message 'orders' ")
                assert snippet.end() == (0, "", "")
            cluster.interrupt()
            assert cluster.end()[0] == 0


@pytest.mark.parametrize("text", ["", "{}", '{"relay": "x", "stores": []}', '{"relay": 1, "stores": 2}', "[]"])
def test_ports_that_cannot_be_read_are_chosen_again(tmp_path: Path, text: str) -> None:
    (tmp_path / cluster_ports.FILE).write_text(text)
    assert cluster_ports.read(tmp_path) == cluster_ports.ClusterPorts()


def test_a_port_that_another_program_holds_is_replaced(tmp_path: Path) -> None:
    with ports.listen("127.0.0.1", 0, "port") as held, datagrams.bind("127.0.0.1", 0) as relay:
        port: int = held.getsockname()[1]
        cluster_ports.write(tmp_path, relay.getsockname()[1], [f"127.0.0.1:{port}"])
        found = cluster_ports.read(tmp_path)
        assert found.stores == (port,)
        assert found.free() == cluster_ports.ClusterPorts(0, (0,))
    assert found.free() == found
    assert (found.store(0), found.store(1)) == (port, 0)
    assert cluster_ports.from_first(15380, 2) == cluster_ports.ClusterPorts(15380, (15381, 15382))


def test_a_first_run_has_the_ports_of_the_handbook() -> None:
    """So the programs of its pages run against it unchanged."""
    pages = "".join(page.read_text() for page in (ROOT / "handbook" / "tutorials").glob("*.md"))
    assert set(re.findall(r"127\.0\.0\.1:(1\d{4})", pages)) == {
        str(port) for port in (cluster_ports.HANDBOOK.relay, *cluster_ports.HANDBOOK.stores)
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_outlives_it(number: signal.Signals, tmp_path: Path) -> None:
    with running("up", "--stores", "1", "--directory", tmp_path, "--json") as cluster:
        ready = cluster.json_line()
        assert ready.keys() == {"ready", "resolver", "stores"}
        assert len(ready["stores"]) == 1
        started = children(cluster.process.pid)
        assert len(started) == 2
        cluster.interrupt(number)
        assert cluster.end() == (0, "", "")
    assert not any(alive(child) for child in started)


def listens(address: str) -> bool:
    """Return whether a program accepts connections there."""
    host, _, port = address.partition(":")
    with socket.socket() as tried:
        return tried.connect_ex((host, int(port))) == 0


def test_a_store_that_ends_by_itself_ends_the_cluster(tmp_path: Path) -> None:
    with running("up", "--stores", "1", "--directory", tmp_path, "--json") as cluster:
        cluster.json_line()
        _, store = started = children(cluster.process.pid)
        os.kill(store, signal.SIGINT)
        status, out, err = cluster.end()
    assert (status, out) == (1, "")
    assert err == "stablecast: store 0 ended with status 0; see its messages above\n"
    assert not any(alive(child) for child in started)


def test_a_killed_store_starts_again_at_its_address_as_one_that_lost_its_files(tmp_path: Path) -> None:
    with running("up", "--stores", "1", "--directory", tmp_path, "--json") as cluster:
        (address,) = cluster.json_line()["stores"]
        relay, store = children(cluster.process.pid)
        os.kill(store, signal.SIGKILL)
        assert cluster.json_line() == {"restarted": "store 0", "signal": "SIGKILL"}
        shutil.rmtree(tmp_path / "store-0")
        assert until(lambda: listens(address))
        assert (tmp_path / "store-0" / "lock").exists()
        assert [child for child in children(cluster.process.pid) if child != relay] != [store]
        cluster.interrupt(signal.SIGINT)
        status, out, err = cluster.end()
    assert (status, out) == (0, "")
    assert "may be a replaced disk" in err


def test_an_interrupt_while_a_store_is_to_start_again_leaves_nothing(tmp_path: Path) -> None:
    with running("up", "--stores", "1", "--directory", tmp_path, "--json") as cluster:
        cluster.json_line()
        _, store = started = children(cluster.process.pid)
        os.kill(store, signal.SIGKILL)
        assert cluster.json_line()["restarted"] == "store 0"
        cluster.interrupt(signal.SIGINT)
        assert cluster.end() == (0, "", "")
    assert not any(alive(child) for child in started)


def test_a_store_whose_files_are_gone_is_no_new_one_in_the_next_run(tmp_path: Path) -> None:
    for err in "", "may be a replaced disk":
        with running("up", "--stores", "1", "--directory", tmp_path, "--json") as cluster:
            cluster.json_line()
            cluster.interrupt(signal.SIGINT)
            assert err in cluster.end()[2]
        shutil.rmtree(tmp_path / "store-0")


def test_a_directory_in_use_is_told(tmp_path: Path) -> None:
    arguments = ("up", "--stores", "2", "--directory", tmp_path, "--json")
    with running(*arguments) as first:
        first.json_line()
        with running(*arguments) as second:
            status, out, err = second.end()
    assert (status, out) == (1, "")
    assert "is in use by process" in err
    assert err.splitlines()[-1].startswith("stablecast: store ")
