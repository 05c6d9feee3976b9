"""A store and a relay at the addresses that examples and documents name."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.program import lbmrd, store

STORE = "127.0.0.1:14567"
RELAY = "127.0.0.1:15380"
LOCK = Path(tempfile.gettempdir()) / "stablecast-tests-default-addresses.lock"


@contextmanager
def default_cluster(directory: Path) -> Iterator[None]:
    """Run the store and the relay, for one test at a time on this machine."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with lbmrd(RELAY), store(directory / "store", listen=STORE):
            yield
