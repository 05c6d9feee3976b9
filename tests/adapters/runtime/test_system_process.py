"""What a program asks of its own process."""

import os
import resource
from pathlib import Path

import pytest

from stablecast.runtime.machine import process


def test_a_daemon_may_open_as_many_descriptors_as_the_system_lets_it() -> None:
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, most))
        few = process.free_descriptors()
        process.raise_descriptor_limit()
        assert process.free_descriptors() - few == most - 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


@pytest.mark.skipif(not Path("/proc/self/fd").stat().st_size, reason="Linux counts them since 6.2")
def test_descriptors_between_others_are_not_counted_as_all_the_rest() -> None:
    """A connection that was hung up on leaves a free number below those in use."""
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    before = process.free_descriptors()
    os.close(opened.pop(0))
    after = process.free_descriptors()
    for one in opened:
        os.close(one)
    assert after - before == 1


def test_files_are_private_from_then_on(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        process.keep_files_private()
        (tmp_path / "file").write_text("")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_memory_is_told_in_bytes() -> None:
    assert process.resident_bytes() > 10 << 20
