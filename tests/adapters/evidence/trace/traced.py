"""Common code of the tests of traces: a traced world, and traces changed and written again."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.inputs import History, Input
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.evidence.trace import container
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.frames import TraceFrame, frames_from, text_of
from stablecast.evidence.trace.trace_recorder import FLUSH_NS, Recorder
from stablecast.evidence.trace.writer import TraceWriter
from tests.support.invariants import check_invariants
from tests.support.world import EndpointWorld, Node, ReceiverNode, SourceNode, StoreNode

STORES = ("10.0.0.1:14567", "10.0.0.2:14567", "10.0.0.3:14567")
FIRST_LIFE = 0x1000_0000_0001
SECOND_LIFE = 0x2000_0000_0001

Frames = list[list[Json]]
"""The lines of each frame of a trace."""


class Tap:
    """A machine that is traced, for drivers that know nothing of traces.

    Its frames end every `FLUSH_NS`, far earlier than recorders end them, so that small worlds have many.
    """

    def __init__(self, machine: Any, recorder: Recorder, leaves_all: bool = False, torn: bool = False) -> None:
        self.machine = machine
        self.recorder = recorder
        self.leaves_all = leaves_all
        self.torn = torn
        self.fed: tuple[Input, int] | None = None
        self.due = 0

    def receive(self, event: Input, now: int) -> None:
        self.machine.receive(event, now)
        self.fed = (event, now)

    def take_effects(self) -> list[Any]:
        effects: list[Any] = self.machine.take_effects()
        assert self.fed is not None
        self.recorder.record(*self.fed, effects)
        if self.fed[1] >= self.due:
            self.due = self.fed[1] + FLUSH_NS
            self.recorder.flush()
        return effects

    def kill(self) -> None:
        """Leave the files of a process that dies after a frame, or in the middle of one, or leave a whole trace."""
        if self.leaves_all:
            self.recorder.close()
            return
        if not self.torn:
            self.recorder.flush()
        elif self.fed is not None and self.recorder._records:
            self.recorder._end_piece(self.fed[1])
        writer = self.recorder._writer
        writer._queue.put(None)
        writer._thread.join()
        self.recorder._closed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)


@check_invariants.register
def _(machine: Tap) -> None:
    check_invariants(machine.machine)


@attrs.define
class TracedWorld(EndpointWorld):
    """A world that gives each machine to `wrap` before it starts; worlds of other universes share nothing with it."""

    universe: int = 0
    wrap: Callable[[Role, Node], Any] = lambda _, node: node.machine


@attrs.define(eq=False)
class TracedSource(SourceNode):
    def join(self) -> None:
        self.machine = _wrap(self, Role.SOURCE)
        SourceNode.join(self)

    def stop(self) -> None:
        _stop(self)


@attrs.define(eq=False)
class TracedReceiver(ReceiverNode):
    history: tuple[History, ...] = ()

    def join(self) -> None:
        self.machine = _wrap(self, Role.RECEIVER)
        ReceiverNode.join(self)
        for event in self.history:
            self.feed(event)

    def stop(self) -> None:
        _stop(self)


@attrs.define(eq=False)
class TracedStore(StoreNode):
    def join(self) -> None:
        self.machine = _wrap(self, Role.STORE)
        StoreNode.join(self)

    def stop(self) -> None:
        _stop(self)


def _wrap(node: Node, role: Role) -> Any:
    assert isinstance(node.world, TracedWorld)
    return node.world.wrap(role, node)


def _stop(node: Node) -> None:
    if isinstance(node.machine, Tap):
        node.machine.kill()


def traces_by(directory: Path, role: str) -> list[Path]:
    """Return the traces of a role in the order in which the process began them."""
    return find([directory / f"{role}-*.sct"])


def first_trace(directory: Path, role: str) -> Path:
    return traces_by(directory, role)[0]


def tapping(directory: Path, *, kill: bool = True, torn: bool = False) -> Callable[[Role, Node], Tap]:
    """Each machine gets a recorder in this directory.

    With `kill` a crash leaves a trace without its end; with `torn` its last frame is not finished.
    """
    return lambda role, node: Tap(
        node.machine, Recorder(directory, role, node.address, node.machine, patient=True), not kill, torn
    )


def play(world: TracedWorld) -> None:
    """A source, two receivers and three stores: a store dies and returns, the source dies and returns, so does one
    receiver, who knows what it has consumed.
    """
    first_life, second_life = FIRST_LIFE + world.universe, SECOND_LIFE + world.universe
    stores = [TracedStore.create(world, StoreConfig(_at(world, one), seed)) for seed, one in enumerate(STORES)]
    source = _source(world, first_life)
    first = TracedReceiver.create(world, _receiver(_at(world, "10.1.0.1:9000"), 7, source), source)
    second = TracedReceiver.create(world, _receiver(_at(world, "10.1.0.2:9000"), 0, source), source)
    _send(world, source, 8)
    world.crash(stores[0])
    _send(world, source, 4)
    stores[0] = TracedStore.create(world, stores[0].machine.config, stores[0].disk)
    world.crash(first)
    world.run_until(lambda: len(source.machine.enrollment.counting) == len(STORES))
    _send(world, source, 4)
    _until_all(world, source, second)
    world.crash(source)
    world.run(3 * SECOND)
    source = _source(world, second_life)
    history = (History(first_life, 0, 9),)
    address = _at(world, "10.1.0.1:9001")
    third = TracedReceiver.create(world, _receiver(address, 7, source), source, history=history)
    _send(world, source, 8)
    _until_all(world, source, third)
    world.run(SECOND)
    for node in world.nodes.values():
        if isinstance(node.machine, Tap):
            node.machine.recorder.close()


def _at(world: TracedWorld, address: str) -> str:
    """Return an address; each universe has its own."""
    return address.replace("10.", f"{10 + world.universe}.", 1)


def _source(world: TracedWorld, incarnation: int) -> SourceNode:
    stores = tuple(StoreSpec(_at(world, address)) for address in STORES)
    request, stream = _at(world, "10.2.0.1:9000"), _at(world, "10.2.0.1:9001")
    config = SourceConfig("orders", incarnation, request, stream, stores, GroupRules((len(stores),)), session_id=42)
    source = TracedSource.create(world, config)
    world.run_until(lambda: bool(source.machine.can_send))
    return source


def _receiver(address: str, session_id: int, source: SourceNode) -> ReceiverConfig:
    config = source.machine.config
    return ReceiverConfig("orders", config.incarnation, address, config.reply_to, session_id=session_id)


def _send(world: TracedWorld, source: SourceNode, runs: int) -> None:
    for _ in range(runs):
        source.send(5)
        world.run(20 * MILLISECOND)


def _until_all(world: TracedWorld, source: SourceNode, receiver: ReceiverNode) -> None:
    world.run_until(lambda: receiver.numbers[-1:] == [source.machine.window.next - 1])


def take_apart(path: Path) -> Frames:
    return [[json.loads(line) for line in text.splitlines()] for text in texts(path)]


def put_together(path: Path, frames: Frames) -> Path:
    """Write a trace of these lines, with correct lengths and checksums."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    end = 0
    for lines in frames:
        text = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
        end = container.append(descriptor, end, text)
    os.close(descriptor)
    return path


def records(frames: Frames) -> Iterator[Json]:
    for lines in frames:
        yield from lines[1:-1]


def read_frames(path: Path) -> Iterator[TraceFrame]:
    """Yield the frames of a trace file. Raise TraceError."""
    return (frame for frame, _ in frames_from(path))


def texts(path: Path) -> Iterator[bytes]:
    """Yield the lines of each finished frame. Raise TraceError."""
    return (one.lines for one in container.TextReader(path).read(ended=True) if one.finished)


def with_records(frame: TraceFrame, records: Iterable[Json]) -> TraceFrame:
    return attrs.evolve(frame, body=b"".join(text_of(record) + b"\n" for record in records))


def drain(writer: TraceWriter) -> None:
    """Waits until the thread has written all that it was given."""
    waiting = writer._queue
    assert isinstance(waiting, Queue)
    waiting.join()
