"""Judge machines while they run, by the rules of traces: for worlds that run all their machines in one process.

Nothing is replayed, and a file is written only if somebody wants it. A world knows everything that its machines did,
also those that it killed. So each of them is a complete witness.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input
from stablecast.core.protocol.messages import Address, Role
from stablecast.evidence.trace import endpoint_rules
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.cross_ground import Told, Witness
from stablecast.evidence.trace.cross_rules import Suspect, judge_across
from stablecast.evidence.trace.facts import Book, Fact, gatherer, identity
from stablecast.evidence.trace.frame_judge import RecordWatch
from stablecast.evidence.trace.trace_judge import sentence
from stablecast.runtime.driver import InputRecorder

Report = Callable[[str, str], None]
"""Take the rule that is broken, and a sentence."""


class LiveTrace:
    """The steps of one running machine, judged one by one; a `recorder` gets them, too.

    Attributes:
        complete: Whether others hear and say exactly what the machine does, so that the trace is evidence for them.
    """

    def __init__(
        self, role: Role, name: str, machine: Endpoint, report: Report, recorder: InputRecorder | None = None
    ) -> None:
        """Begin in the state of this machine; broken rules of one endpoint go to `report`."""
        self.role, self.name, self.recorder, self.complete = role, name, recorder, True
        self.book = Book()
        self.address, self.life, self.patience = identity(machine)
        self._report = report
        self._records = 0
        facts = gatherer(machine, self.book, fresh=True)
        self._watch = RecordWatch(endpoint_rules.begin(machine), facts, self.book, self._violate)

    def _violate(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        self._report(rule, f"{self.name}, {text}")

    def record(self, event: Input, now: int, effects: Sequence[Effect]) -> None:
        self._watch.judge(((self._records, now, event, effects),))
        self._records += 1
        if self.recorder is not None:
            self.recorder.record(event, now, effects)

    def close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()


@attrs.define
class LiveLedger:
    """The traces of all machines of one world.

    `place` returns the one name of an endpoint that others find at several addresses. No trace alone can tell that a
    store at another port is the same, so a world says it.
    """

    report: Report
    place: Callable[[Address], str]
    traces: list[LiveTrace] = attrs.field(factory=list)

    def follow(self, role: Role, name: str, machine: Endpoint, recorder: InputRecorder | None = None) -> LiveTrace:
        """Judge a machine from its first step on."""
        trace = LiveTrace(role, name, machine, self.report, recorder)
        self.traces.append(trace)
        return trace

    def judge(self, promised: Callable[[Suspect], bool]) -> None:
        """Judge the rules between endpoints, when all of them have ended; report the suspects that were `promised`."""
        told, witnesses = list[Told](), list[Witness]()
        for index, trace in enumerate(self.traces):
            key = f"{index} {trace.name}"
            told += [Told(key, trace.name, 0, fact) for fact in self._placed(trace)]
            where, ended = self.place(trace.address), trace.book.time
            witnesses.append(Witness(key, trace.role, where, trace.life, trace.complete, ended, trace.patience))
        for suspect in filter(promised, judge_across(told, witnesses).suspects):
            self.report(suspect.rule, f"{suspect.path}, after record {suspect.record}: {sentence(suspect)}")

    def _placed(self, trace: LiveTrace) -> Iterator[Fact]:
        """Yield the facts with the names of places in place of addresses."""
        for fact in trace.book.facts:
            if fact.kind == "listened" and not trace.complete:
                continue
            address, mark, rest = fact.peer.partition("/")
            where = address and self.place(address)
            yield fact if where == address else attrs.evolve(fact, peer=where + mark + rest)
