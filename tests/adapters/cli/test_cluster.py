"""`stablecast up`: what it prints works, and nothing outlives it."""

import os
import shlex
import signal
from pathlib import Path

import pytest

from tests.support.processes import alive, children
from tests.support.program import PROGRAM, running


def test_the_commands_that_it_prints_work(tmp_path: Path) -> None:
    with running("up", "--stores", "2", "--directory", tmp_path / "data") as cluster:
        first, second = (shlex.split(cluster.line()) for _ in range(2))
        receive, send = first[first.index("receive") :], second[second.index("send") :]
        assert first[: -len(receive)] == second[: -len(send)]
        assert first[: -len(receive)] in (["stablecast"], list(PROGRAM))
        with running(*receive) as receiver, running(*send) as sender:
            sender.process.communicate("hello\nagain\n")
            assert sender.process.returncode == 0
            assert [receiver.line(), receiver.line()] == ["hello", "again"]
        cluster.interrupt()
        status, _, err = cluster.end()
        assert status == 0
        assert "interrupt to stop" in err
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"store-0", "store-1"}


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


def test_a_store_that_ends_by_itself_ends_the_cluster(tmp_path: Path) -> None:
    with running("up", "--stores", "1", "--directory", tmp_path, "--json") as cluster:
        cluster.json_line()
        _, store = started = children(cluster.process.pid)
        os.kill(store, signal.SIGKILL)
        status, out, err = cluster.end()
    assert (status, out) == (1, "")
    assert err == "stablecast: store 0 ended with status -9; see its messages above\n"
    assert not any(alive(child) for child in started)


def test_a_directory_in_use_is_told(tmp_path: Path) -> None:
    arguments = ("up", "--stores", "2", "--directory", tmp_path, "--json")
    with running(*arguments) as first:
        first.json_line()
        with running(*arguments) as second:
            status, out, err = second.end()
    assert (status, out) == (1, "")
    assert "is in use by process" in err
    assert err.splitlines()[-1].startswith("stablecast: store ")
