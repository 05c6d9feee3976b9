"""Growth of a store's directory under a disk limit, with a real process that receives many times the limit."""

from contextlib import suppress
from pathlib import Path

import pytest

from stablecast.client import Context
from tests.support.program import store

LIMIT = 8_000_000
SIZE = 1000
RUN = 500
RUNS = 80
ROOM = 1.6
"""Factor of the limit: two journal files of a quarter of the limit each, and their bytes beside messages."""


def used(directory: Path) -> int:
    """Return the bytes of all files. The store may delete one between its name and its size."""
    sizes = []
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return sum(sizes)


@pytest.mark.rows("P-118")
async def test_the_directory_stays_near_the_limit(tmp_path: Path) -> None:
    """The source sends five times the limit, and all messages are stable."""
    limit = f"repository-disk-file-size-limit={LIMIT}"
    most = 0
    with store(tmp_path, "--option", limit) as (program, address):
        async with Context(session_id=1) as context:
            source = await context.source("orders", stores=[address])
            for number in range(1, RUNS + 1):
                await source.send_many([bytes(SIZE)] * RUN)
                await source.wait_stable_through(number * RUN - 1)
                most = max(most, used(tmp_path))
        program.interrupt()
        assert program.end()[0] == 0
    assert LIMIT / 2 < used(tmp_path) <= most < ROOM * LIMIT
