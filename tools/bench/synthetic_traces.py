"""Traces of any length: a source, its stores and a receiver run in lockstep, as machines with recorders only.

    python -m tools.bench.synthetic_traces DIRECTORY --records 10000000 --sessions 4

The program writes about 10000000 records of four independent sessions. A record is an input for a run of messages. The
virtual time runs so fast that frames have their full size.
"""

import argparse
import os
import sys
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import inputs
from stablecast.core.protocol.inputs import Input
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.trace_recorder import Recorder
from tools.bench.roles import BenchError

STEP_NS: Final = 10_000
"""Virtual time between two records of a session (ns)."""

RUN: Final = 20
"""Number of messages in a run."""

SIZE: Final = 1000
"""Size of a message (bytes)."""

STORES: Final = 3


@attrs.define(eq=False)
class Node:
    """A machine, its recorder, and the nodes that joined its stream."""

    machine: Any
    recorder: Recorder
    joined: list["Node"] = attrs.field(factory=list)


@attrs.define(eq=False)
class LockstepSession:
    """One source with its stores and its receiver, by address.

    `queue` holds the next inputs. `troubles` are the reasons why traces ended early.
    """

    directory: Path
    name: int
    now: int = 0
    records: int = 0
    token: int = 0
    nodes: dict[str, Node] = attrs.field(factory=dict)
    queue: deque[tuple[Node, Input]] = attrs.field(factory=deque)
    troubles: list[str] = attrs.field(factory=list)

    def begin(self) -> Node:
        """Start all nodes; return the source."""
        stores = [f"10.{self.name}.0.{store}:14567" for store in range(STORES)]
        for seed, address in enumerate(stores):
            self._add(Role.STORE, address, StoreEndpoint.create(StoreConfig(address, seed)))
        life, request, stream = (self.name + 1) << 32 | 1, f"10.{self.name}.2.1:9000", f"10.{self.name}.2.1:9001"
        specs = tuple(StoreSpec(address) for address in stores)
        config = SourceConfig(f"t{self.name}", life, request, stream, specs, GroupRules((STORES,)), session_id=42)
        source = self._add(Role.SOURCE, request, SourceEndpoint.create(config))
        address = f"10.{self.name}.1.1:9000"
        self._join(
            source,
            self._add(
                Role.RECEIVER,
                address,
                ReceiverSession.create(ReceiverConfig(f"t{self.name}", life, address, request, session_id=7)),
            ),
        )
        return source

    def work(self, source: Node, records: int) -> None:
        """Send until there are `records` records, or until a trace cannot be written any more."""
        while self.records < records and not self.troubles:
            if source.machine.can_send:
                self._send(source)
            self._settle()
            self._wake()

    def close(self) -> None:
        """Complete the traces. Raises BenchError if one could not be written."""
        for node in self.nodes.values():
            node.recorder.close()
        if self.troubles:
            raise BenchError(self.troubles[0])

    def _add(self, role: Role, address: str, machine: Any) -> Node:
        recorder = Recorder(self.directory, role, address, machine, patient=True, report=self.troubles.append)
        node = self.nodes[address] = Node(machine, recorder)
        self._feed(node, inputs.Start())
        return node

    def _send(self, source: Node) -> None:
        first, incarnation = source.machine.window.next, source.machine.config.incarnation
        self._feed(source, inputs.Sent(first, RUN, RUN * SIZE))
        for node in source.joined:
            self.token += 1
            self.queue.append(
                (
                    node,
                    inputs.Data(
                        incarnation, incarnation, serial.wire(first), RUN, RUN * SIZE, recovered=False, token=self.token
                    ),
                )
            )

    def _join(self, source: Node, node: Node) -> None:
        if node not in source.joined:
            source.joined.append(node)
            if source.machine.can_send:
                self.queue.append((node, inputs.Arrived(source.machine.info())))

    def _settle(self) -> None:
        while self.queue:
            self._feed(*self.queue.popleft())

    def _wake(self) -> None:
        self.now += STEP_NS
        due = [node for node in self.nodes.values() if (node.machine.next_timeout() or self.now + 1) <= self.now]
        for node in due:
            self._feed(node, inputs.Tick())

    def _feed(self, node: Node, event: Input) -> None:
        self.now += STEP_NS
        self.records += 1
        node.machine.receive(event, self.now)
        effects = node.machine.take_effects()
        node.recorder.record(event, self.now, effects)
        ticket = -1
        for effect in effects:
            ticket = max(ticket, getattr(effect, "ticket", -1))
            self._perform(node, effect)
        if ticket >= 0:
            self.queue.append((node, inputs.Persisted(ticket)))

    def _perform(self, node: Node, effect: fx.Effect) -> None:
        match effect:
            case fx.Send():
                self.queue.append((self.nodes[effect.to], inputs.Arrived(effect.message)))
            case fx.Broadcast():
                self.queue += [(other, inputs.Arrived(effect.message)) for other in node.joined]
            case fx.Deliver():
                self.queue.append((node, inputs.Consumed(effect.first, effect.first + effect.count - 1)))
            case fx.AskRegId():
                self.queue.append((node, inputs.RegIdChosen(effect.store_index, 0)))
            case fx.AskLow():
                self.queue.append((node, inputs.LowChosen(effect.low)))
            case fx.Join():
                source = next(one for one in self.nodes.values() if isinstance(one.machine, SourceEndpoint))
                self._join(source, node)


def write(directory: Path, records: int, sessions: int) -> int:
    """Write the traces on all cores; return the number of records."""
    names = range(sessions)
    each = repeat(records // sessions)
    with ProcessPoolExecutor(min(sessions, os.cpu_count() or 1)) as pool:
        return sum(pool.map(_write_one, repeat(directory), names, each))


def _write_one(directory: Path, name: int, records: int) -> int:
    session = LockstepSession(directory, name)
    session.work(session.begin(), records)
    session.close()
    return session.records


def main(arguments: list[str]) -> None:
    """Parse the command line and write the traces."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--sessions", type=int, default=4)
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    written = write(given.directory, given.records, given.sessions)
    print(f"{written} records in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
