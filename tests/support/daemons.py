"""A daemon of one store with a monitor, as a process, and what the monitor shows of it."""

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from tests.support.program import Program, running

PATIENCE_SECONDS = 30
CONFIG = """
[daemon]
log = "{directory}/log"
web-monitor = "127.0.0.1:0"
[[store]]
name = "one"
port = 0
interface = "127.0.0.1"
options = {{ disk-cache-directory = "{directory}", disk-state-directory = "{directory}" }}
[[store.topic]]
pattern = "."
type = "PCRE"
options = {{ keepalive-interval = 100, source-activity-timeout = 500, receiver-activity-timeout = 500 {more} }}
"""


@attrs.frozen
class Daemon:
    """A daemon of one store."""

    program: Program
    store: str
    monitor: str
    log: Path

    def sources(self) -> list[dict[str, Any]]:
        """What the monitor shows."""
        with urllib.request.urlopen(f"http://{self.monitor}/api/stores/0/sources") as answer:
            found: list[dict[str, Any]] = json.load(answer)["sources"]
            return found

    def until_away(self) -> None:
        """Until the monitor has seen its source, and that it is silent; or until the source is forgotten."""
        until(lambda: bool(self.sources()) or "client-deleted" in self.log.read_text())
        until(lambda: not any(one["active"] for one in self.sources()))

    def metric(self, name: str) -> float:
        """A metric of the store."""
        with urllib.request.urlopen(f"http://{self.monitor}/metrics") as answer:
            [value] = re.findall(rf"^{name}{{[^}}]*}} (\S+)$", answer.read().decode(), re.MULTILINE)
            return float(value)


@contextmanager
def daemon(directory: Path, more: str = "") -> Iterator[Daemon]:
    """A store, its files in a directory, with more options of its topics."""
    path = directory / "store.toml"
    path.write_text(CONFIG.format(directory=directory, more=more))
    with running("store", path, "--new", "--json") as program:
        ready, monitor = program.said(), program.said()
        yield Daemon(program, ready["address"], monitor["monitor"], directory / "log")


def until(holds: Callable[[], bool]) -> None:
    """Wait for what other processes do."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
