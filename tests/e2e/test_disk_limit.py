"""How far a store's directory grows under a disk limit, with a process that is sent many times that."""

from contextlib import suppress
from pathlib import Path

from stablecast.client import Context
from tests.support.program import running

LIMIT = 8_000_000
SIZE = 1000
RUN = 500
RUNS = 80
ROOM = 1.6
"""Times the limit: two files of the journal, each a quarter of it, and what is not message in them."""


def used(directory: Path) -> int:
    """Return the bytes of all files. The store may delete one between its name and its size."""
    sizes = []
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return sum(sizes)


async def test_the_directory_stays_near_the_limit(tmp_path: Path) -> None:
    """P-118: five times the limit is sent, and all of it is stable."""
    limit = f"repository-disk-file-size-limit={LIMIT}"
    most = 0
    with running("store", tmp_path, "--new", "--json", "--listen", "127.0.0.1:0", "--option", limit) as store:
        async with Context(session_id=1) as context:
            source = await context.source("orders", stores=[store.said()["address"]])
            for number in range(1, RUNS + 1):
                await source.send_many([bytes(SIZE)] * RUN)
                await source.wait_stable_through(number * RUN - 1)
                most = max(most, used(tmp_path))
        store.interrupt()
        assert store.end()[0] == 0
    assert LIMIT / 2 < used(tmp_path) <= most < ROOM * LIMIT
