"""A file that is replaced while the power goes: it has its old bytes or the new ones."""

import errno
from random import Random

import pytest

from stablecast.runtime import durable_files, machine
from tests.adapters.lab.world.test_host_files import DIRECTORY, Host, host
from tests.support.machine import replace

__all__ = ["host"]

PATH = DIRECTORY / "kept.json"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("at", ["sync", "rename", "sync_directory"])
def test_a_loss_of_power_leaves_the_old_bytes_or_the_new_ones(
    host: Host, at: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable_files.write(PATH, b"old")

    def cut(*_: object) -> None:
        host.system.crash(Random(seed))
        raise OSError(errno.EIO, "the power went")

    with monkeypatch.context() as patch:
        replace(patch, "files", **{at: cut})
        with pytest.raises(OSError, match="the power went"):
            durable_files.write(PATH, b"new and longer")
    host.restart()
    assert machine.files.read_bytes(PATH) in (b"old", b"new and longer")


@pytest.mark.parametrize("seed", range(20))
def test_what_was_written_survives_a_loss_of_power(host: Host, seed: int) -> None:
    durable_files.write(PATH, b"old")
    durable_files.write(PATH, b"new")
    host.system.crash(Random(seed))
    host.restart()
    assert machine.files.read_bytes(PATH) == b"new"
