"""Stories: what a chapter of the guide tells, played in the deterministic world and written down as it happens.

A story is a text file. Lines that begin with `> ` are commands, lines that are indented are what happened, everything
else is prose. `STABLECAST_REWRITE=1 pytest tests/scenarios/test_stories.py` plays the stories and writes down what
happens; without it what happens must be what is written.

    > stores 3                        three stores start, or as many as said; options as name=value
    > source [option=value ...]       a life of the source starts
    > receiver NAME [option=value]    a receiver starts
    > send N [SIZE]                   the source's application sends N messages
    > run TIME                        time passes: 300ms, 2s
    > crash NAME, start NAME          a store, the source or a receiver ends, or comes back
    > wipe NAME                       as crash; a store's disk is lost as well
    > freeze NAME, thaw NAME          a process is stopped, and runs again
    > tell NAME INPUT [FIELD=N ...]   an input for an endpoint, such as Withdraw or Blocked
    > quiet WHAT ...                  leave out lines that contain one of these words from here on
"""

import os
from pathlib import Path
from typing import Any

from stablecast.config.options import apply
from stablecast.core import inputs
from stablecast.core.settings import RepositoryConfig, StoreConfig
from stablecast.core.units import MILLISECOND, SECOND
from tests.scenarios.telling import told
from tests.support.cluster import Cluster
from tests.support.world import Node

UNITS = {"ms": MILLISECOND, "s": SECOND}
REWRITE = bool(os.environ.get("STABLECAST_REWRITE"))


class Story:
    """One story being played."""

    def __init__(self) -> None:
        self.cluster = Cluster(size=0)
        self.cluster.world.told = self._told
        self.lines: list[str] = []
        self.quiet: list[str] = []
        self.options: dict[str, Any] = {}

    def play(self, command: str) -> list[str]:
        """Do what a command says; returns what happened."""
        name, *words = command.split()
        getattr(self, f"_{name}")(*words)
        lines, self.lines = self.lines, []
        return lines

    def _told(self, node: Node, effect: Any) -> None:
        line = told(effect)
        if line is not None and not any(word in line for word in self.quiet):
            self.lines.append(f"    {self.cluster.world.now / MILLISECOND:9.1f} ms  {node.address:9} {line}")

    # Commands.

    def _stores(self, count: str, *options: str) -> None:
        self.cluster.size = int(count)
        self.cluster.store_config = _store(options)
        for index in range(self.cluster.size):
            self.cluster.start_store(f"store{index}")

    def _source(self, *options: str) -> None:
        self.cluster.source_options = _options(options)
        self.cluster.start_source()

    def _receiver(self, name: str, *options: str) -> None:
        self.cluster.receiver_options[name] = _options(options)
        self.cluster.start_receiver(name)

    def _send(self, count: str, size: str = "100") -> None:
        self.cluster.source.send(int(count), int(size))

    def _run(self, span: str) -> None:
        digits = span.rstrip("ms")
        self.cluster.world.run(int(digits) * UNITS[span[len(digits) :]])

    def _crash(self, name: str) -> None:
        self.cluster.crash(name)

    def _wipe(self, name: str) -> None:
        self.cluster.crash_store(name, wipe=True)

    def _start(self, name: str) -> None:
        self.cluster.start(name)

    def _freeze(self, name: str) -> None:
        self.cluster.node(name).frozen = True

    def _thaw(self, name: str) -> None:
        self.cluster.node(name).thaw()

    def _tell(self, name: str, kind: str, *fields: str) -> None:
        values = {key: int(value) for key, value in (field.split("=") for field in fields)}
        self.cluster.node(name).arrive(getattr(inputs, kind)(**values))

    def _quiet(self, *words: str) -> None:
        self.quiet = list(words)


def _options(words: tuple[str, ...]) -> dict[str, Any]:
    return dict(word.split("=", 1) for word in words)


def play(path: Path) -> tuple[str, str]:
    """What is written in a story, and what is when it is played."""
    written = path.read_text(encoding="utf-8")
    story, lines = Story(), []
    for line in written.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line)
        if line.startswith("> "):
            lines += story.play(line[2:])
    return written, "\n".join(lines) + "\n"
