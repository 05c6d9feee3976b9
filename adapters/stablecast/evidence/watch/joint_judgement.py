"""The judgement of all traces together: facts of each trace come in, sentences go out.

The traces may be read in this process, or by tasks of Spark. Both give the same facts and standings.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace.cross_ground import Told
from stablecast.evidence.trace.file_names import part_of
from stablecast.evidence.trace.trace_judge import violation
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.fact_ledger import FactLedger, Standing

MAX_NAMED: Final = 1 << 14
"""Reported records that are remembered."""

QUIET_NS: Final = 3600 * SECOND
"""A trace without new records for this time is given up: its process was killed. It is followed again if it grows."""


@attrs.frozen
class TraceStanding:
    """A followed trace after a reading.

    Attributes:
        path: The part that is read.
        evidence: The trace as evidence; None before its first frame.
        closed: Whether the endpoint ended its trace.
        ended: Whether nothing more is expected.
        owner: Role and name of the endpoint.
        wall_ns: The wall clock of its host at time 0 of its clock, if known.
        records: Records judged.
        read_ns: The watch's clock when records came last.
    """

    path: Path
    evidence: Standing | None
    closed: bool
    ended: bool
    owner: str
    wall_ns: int | None
    records: int
    read_ns: int


@attrs.define
class JointJudgement:
    """The rules between traces.

    Attributes:
        ledger: The facts.
        named: Records and rules that were reported lately, so that two judges do not report the same twice.
    """

    ledger: FactLedger = attrs.field(factory=FactLedger)
    named: "OrderedDict[tuple[Path, int, str], None]" = attrs.field(factory=OrderedDict)

    def judge(self, told: Iterable[Told], traces: Mapping[str, TraceStanding], now_ns: int) -> Iterator[WatchAlarm]:
        """Yield sentences about new facts and waiting ones, at this time of the watch's clock."""
        self.ledger.add(told, now_ns)
        standings = [one.evidence for one in traces.values() if one.evidence is not None]
        found = self.ledger.judge(standings, now_ns)
        for suspect in found.suspects:
            one = violation(suspect)
            trace = traces.get(part_of(one.path)[0])
            whose = "" if trace is None else trace.owner
            known = trace is not None and trace.wall_ns is not None and one.time is not None
            wall = trace.wall_ns + one.time if known else None  # type: ignore[union-attr, operator] # known
            yield WatchAlarm(AlarmKind.VIOLATION, one.rule, one.path, whose, one.record, one.text, one.time, wall)
        for text in found.notes:
            yield WatchAlarm(AlarmKind.NOTE, "undecided", Path(), "", 0, text)

    def end(self, one: TraceStanding) -> None:
        """Remember a trace that is no longer followed as evidence."""
        if one.evidence is not None:
            whole = one.evidence.whole and one.closed
            self.ledger.end(attrs.evolve(one.evidence, whole=whole, ended=one.closed))

    def first_time(self, alarm: WatchAlarm) -> bool:
        """Return whether a sentence is no violation that was reported lately; remember it."""
        if alarm.kind is not AlarmKind.VIOLATION:
            return True
        key = alarm.file, alarm.place, alarm.rule
        if key in self.named:
            return False
        self.named[key] = None
        if len(self.named) > MAX_NAMED:
            self.named.popitem(last=False)
        return True
