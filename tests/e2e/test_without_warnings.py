"""The normal path of the README in the interpreter's development mode: no open resources and no warnings."""

import shlex
from pathlib import Path

import pytest

from tests.examples.programs import example
from tests.support.defaults import default_cluster
from tests.support.program import lbmrd, running, store

COMPLAINTS = ("Warning", "Traceback", "Exception", "never awaited", "unclosed")


@pytest.fixture(autouse=True)
def development_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show resource warnings, and let event loops check their callers."""
    monkeypatch.setenv("PYTHONDEVMODE", "1")


def is_quiet(errors: str) -> bool:
    """Return whether standard error has no complaint of the interpreter. A slow turn of a loop is not one."""
    return not any(word in errors for word in COMPLAINTS)


def test_the_examples(tmp_path: Path) -> None:
    with (
        default_cluster(tmp_path),
        example("quick_receiver.py", tmp_path) as receiver,
        example("quick_source.py", tmp_path) as source,
    ):
        receiver.until("plums")
        assert (receiver.interrupt(), source.end()) == (0, 0)
        assert is_quiet(receiver.error() + source.error())
    with example("embed.py", tmp_path) as embedded:
        assert embedded.end() == 0
        assert is_quiet(embedded.error())


def test_the_commands(tmp_path: Path) -> None:
    """A relay, a store, a receiver and a source run. The daemons end directly after their clients."""
    with lbmrd() as (relay, resolver), store(tmp_path) as (keeper, address):
        common = ("orders", "--resolver", resolver, "--session-id", "1")
        with running("receive", *common, "--count", "2") as receiver:
            with running("send", *common, "--store", address) as sender:
                _, errors = sender.process.communicate("hello\nagain\n")
                assert (sender.process.returncode, is_quiet(errors)) == (0, True)
            status, _, errors = receiver.end()
            assert (status, is_quiet(errors)) == (0, True)
        for daemon in (keeper, relay):
            daemon.interrupt()
            status, _, errors = daemon.end()
            assert (status, is_quiet(errors)) == (0, True)


def test_a_local_cluster(tmp_path: Path) -> None:
    with running("up", "--stores", "2", "--directory", tmp_path / "data") as cluster:
        _, second = (shlex.split(cluster.line()) for _ in range(2))
        with running(*second[second.index("send") :]) as sender:
            _, errors = sender.process.communicate("hello\n")
            assert (sender.process.returncode, is_quiet(errors)) == (0, True)
        cluster.interrupt()
        status, _, errors = cluster.end()
        assert (status, is_quiet(errors)) == (0, True)
