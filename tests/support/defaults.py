"""Three stores and a relay at the addresses that examples and documents name."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.program import lbmrd, store

STORES = tuple(f"127.0.0.1:{port}" for port in (14567, 14568, 14569))
STORE = STORES[0]
RELAY = "127.0.0.1:15380"
LOCK = Path(tempfile.gettempdir()) / "stablecast-tests-default-addresses.lock"


@contextmanager
def default_cluster(directory: Path) -> Iterator[None]:
    """Run the stores and the relay, for one test at a time on this machine."""
    with LOCK.open("w") as lock, ExitStack() as running:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running.enter_context(lbmrd(RELAY))
        for address in STORES:
            running.enter_context(store(directory / address.rpartition(":")[2], listen=address))
        yield
