"""Stories: what a chapter of the guide tells, played in the deterministic world and written down as it happens.

A story is a text file. Lines that begin with `> ` are commands, lines that are indented are what happened, everything
else is prose. `STABLECAST_REWRITE=1 pytest tests/scenarios/test_stories.py` plays the stories and writes down what
happens; without it what happens must be what is written.

    > stores 3                        three stores start, or as many as said; options as name=value
    > source [option=value ...]       a life of the source starts; groups=0,0,1: which group each store is in
    > receiver NAME [option=value]    a receiver starts
    > send N [SIZE]                   the source's application sends N messages
    > run TIME                        time passes: 300ms, 2s
    > crash NAME, start NAME          a store, the source or a receiver ends, or comes back
    > wipe NAME                       as crash; a store's disk is lost as well
    > freeze NAME, thaw NAME          a process is stopped, and runs again
    > tell NAME INPUT [FIELD=N ...]   an input for an endpoint, such as Withdraw or Blocked
    > lose NAME N                     the source sends N messages, which this one does not get
    > hold NAME                       a receiver's application stops consuming; once more: it goes on
    > quiet WHAT ...                  leave out lines that contain one of these words from here on
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from stablecast.config.options import apply
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import inputs
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig, StoreSpec
from tests.scenarios.story_lines import effect_line
from tests.support.cluster import Cluster
from tests.support.world import Node

UNITS = {"ms": MILLISECOND, "s": SECOND}
REWRITE = bool(os.environ.get("STABLECAST_REWRITE"))

Options = dict[str, str]


@attrs.define
class Stage(Cluster):
    """A cluster whose endpoints get options by their documented names."""

    store_options: Options = attrs.field(factory=dict)
    source_options: Options = attrs.field(factory=dict)
    receiver_options: dict[str, Options] = attrs.field(factory=dict)

    def store_config(self, name: str) -> StoreConfig:
        """Return the configuration of a store with the story's options."""
        plain = attrs.evolve(Cluster.store_config(self, name), seed=int(name.removeprefix("store")) + 1)
        return apply("store", plain, self.store_options)

    def source_config(self) -> dict[str, Any]:
        """Return the changes that the options of the source make."""
        options = dict(self.source_options)
        groups = [int(group) for group in options.pop("groups", ",".join("0" * self.size)).split(",") if group]
        sizes = tuple(groups.count(group) for group in sorted(set(groups)))
        stores = tuple(StoreSpec(f"store{index}", group=group) for index, group in enumerate(groups))
        plain = SourceConfig("topic", 0, "source", "stream", session_id=1)
        staged = attrs.evolve(plain, stores=stores, groups=GroupRules(sizes))
        config = apply("source", staged, options)
        names = [field.name for field in attrs.fields(SourceConfig)]
        return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(plain, name)}

    def receiver_config(self, name: str, plain: ReceiverConfig) -> ReceiverConfig:
        return apply("receiver", plain, self.receiver_options[name])

    def node(self, name: str) -> Node:
        return self.world.nodes[name]


class Story:
    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.world.observe = self._record
        self.lines: list[str] = []
        self.quiet: Sequence[str] = ()

    def play(self, command: str) -> list[str]:
        """Execute a command; return the lines of what happened."""
        name, *words = command.split()
        getattr(self, f"_{name}")(*words)
        lines, self.lines = self.lines, []
        return lines

    def _record(self, node: Node, effect: Effect) -> None:
        line = effect_line(effect)
        if line is not None and not any(word in line for word in self.quiet):
            self.lines.append(f"    {self.stage.world.now / MILLISECOND:9.1f} ms  {node.address:9} {line}")

    # Commands.

    def _stores(self, count: str, *options: str) -> None:
        self.stage.size = int(count)
        self.stage.store_options = _options(options)
        for index in range(self.stage.size):
            self.stage.start_store(f"store{index}")

    def _source(self, *options: str) -> None:
        self.stage.source_options = _options(options)
        self.stage.start_source(**self.stage.source_config())

    def _receiver(self, name: str, *options: str) -> None:
        self.stage.receiver_options[name] = _options(options)
        self.stage.start_receiver(name)

    def _send(self, count: str, size: str = "100") -> None:
        self.stage.source.send(int(count), int(size))

    def _run(self, span: str) -> None:
        digits = span.rstrip("ms")
        self.stage.world.run(int(digits) * UNITS[span[len(digits) :]])

    def _crash(self, name: str) -> None:
        if name == "source":
            self.stage.crash_source()
        elif name in self.stage.stores:
            self.stage.crash_store(name)
        else:
            self.stage.crash_receiver(name)

    def _wipe(self, name: str) -> None:
        self.stage.crash_store(name, wipe=True)

    def _start(self, name: str) -> None:
        if name == "source":
            self.stage.start_source(**self.stage.source_config())
        elif name in self.stage.stores:
            self.stage.start_store(name)
        else:
            self.stage.start_receiver(name)

    def _freeze(self, name: str) -> None:
        self.stage.node(name).frozen = True

    def _thaw(self, name: str) -> None:
        self.stage.node(name).thaw()

    def _lose(self, name: str, count: str) -> None:
        """The source sends messages that this one does not get."""
        joiner = self.stage.node(name)
        source = self.stage.source
        source.joined = [other for other in source.joined if other is not joiner]
        source.send(int(count))
        source.joined.append(joiner)  # type: ignore[arg-type]

    def _hold(self, name: str) -> None:
        """The receiver's application stops consuming, and with `hold NAME` again goes on."""
        receiver = self.stage.node(name)
        receiver.consuming = not receiver.consuming  # type: ignore[attr-defined]

    def _tell(self, name: str, kind: str, *fields: str) -> None:
        values = {key: int(value) for key, value in (field.split("=") for field in fields)}
        self.stage.node(name).arrive(getattr(inputs, kind)(**values))

    def _quiet(self, *words: str) -> None:
        self.quiet = words


def _options(words: Sequence[str]) -> Options:
    return dict(word.split("=", 1) for word in words)


def play(path: Path) -> tuple[str, str]:
    """Play a story; return its text as written and as played."""
    written = path.read_text(encoding="utf-8")
    story = Story()
    lines: list[str] = []
    for line in written.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line)
        if line.startswith("> "):
            lines += story.play(line[2:])
    return written, "\n".join(lines) + "\n"
