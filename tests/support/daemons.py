"""Store daemons with a monitor, as processes, and the contents of the monitor."""

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from tests.support import processes
from tests.support.network import unused_port
from tests.support.program import Program, running

CONFIG = """
[daemon]
log = "{directory}/log"
web-monitor = "127.0.0.1:{monitor}"
[[store]]
name = "one"
port = {port}
interface = "127.0.0.1"
options = {{ disk-cache-directory = "{directory}", disk-state-directory = "{directory}" }}
[[store.topic]]
pattern = "."
type = "PCRE"
options = {{ keepalive-interval = 100, source-activity-timeout = 500, receiver-activity-timeout = 500 {more} }}
"""


@attrs.frozen
class Daemon:
    """A store daemon: the addresses of its stores and its monitor, and the monitor's token if it has one."""

    program: Program
    stores: list[str]
    monitor: str
    log: Path
    token: str = ""

    @property
    def store(self) -> str:
        return self.stores[0]

    def get(self, path: str) -> Any:
        """Return an answer of the monitor: decoded below `/api`, else as text."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with urllib.request.urlopen(urllib.request.Request(f"http://{self.monitor}{path}", headers=headers)) as answer:
            text = answer.read().decode()
            return json.loads(text) if path.startswith("/api") else text

    def sources(self) -> list[dict[str, Any]]:
        """Return the sources of the first store, as the monitor shows them."""
        found: list[dict[str, Any]] = self.get("/api/stores/0/sources")["sources"]
        return found

    def codes(self, index: int = 0) -> set[str]:
        """Return the codes of a store's findings, as the monitor shows them."""
        return {finding["code"] for finding in self.get(f"/api/stores/{index}")["findings"]}

    def metric(self, name: str) -> float:
        [value] = re.findall(rf"^{name}{{[^}}]*}} (\S+)$", self.get("/metrics"), re.MULTILINE)
        return float(value)


@contextmanager
def daemon(directory: Path, more: str = "") -> Iterator[Daemon]:
    """Run a daemon of one store with its files in `directory`; `more` are further options of its topics.

    It has ports that no program gets while the daemon is away.
    """
    path = directory / "store.toml"
    path.write_text(CONFIG.format(directory=directory, more=more, port=unused_port(), monitor=unused_port()))
    with running("store", path, "--new", "--json") as program:
        ready, monitor = program.json_line(), program.json_line()
        yield Daemon(program, [ready["address"]], monitor["monitor"], directory / "log")


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that other processes bring about."""
    assert processes.until(condition)
