"""All traces of some directories and files, followed while they grow.

`poll` reads what is new of each trace, judges it, and returns the sentences. A caller that has no clock of its own,
such as a test, gives any times that rise.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace import container
from stablecast.evidence.trace.cross_rules import Told
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import SUFFIX, part_of
from stablecast.evidence.trace.trace_judge import violation
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.fact_ledger import FactLedger, Standing
from stablecast.evidence.watch.followed_trace import FollowedTrace
from stablecast.evidence.watch.growing_trace import GrowingTrace
from stablecast.runtime import garbage_collection

MAX_FOLLOWED: Final = 4096
"""Traces that are followed at a time; the one that was silent for longest is given up for a new one."""

MAX_NAMED: Final = 1 << 14
"""Reported records that are remembered."""

QUIET_NS: Final = 3600 * SECOND
"""A trace without new records for this time is given up: its process was killed. It is followed again if it grows."""


@attrs.define
class TraceWatch:
    """The followed traces, and the rules between them.

    Attributes:
        paths: Directories, files and patterns.
        whole: Whether traces that are there at the beginning are judged from their first record.
        traces: The followed traces, by the path of their first part.
        ledger: The rules between traces.
        sizes: Traces that were given up or ended, with the bytes of their last file.
        records: Records judged.
        named: Records and rules that were reported lately, so that two judges do not report the same twice.
    """

    paths: list[Path]
    whole: bool = False
    traces: dict[str, FollowedTrace] = attrs.field(factory=dict)
    ledger: FactLedger = attrs.field(factory=FactLedger)
    sizes: dict[str, int] = attrs.field(factory=dict)
    records: int = 0
    named: "OrderedDict[tuple[Path, int, str], None]" = attrs.field(factory=OrderedDict)
    _begun: bool = False

    def poll(self, now_ns: int) -> list[WatchAlarm]:
        """Judge what is new, at this time of the caller's clock (ns), and return its sentences."""
        alarms: list[WatchAlarm] = []
        with garbage_collection.paused():
            self._find(alarms)
            told: list[Told] = []
            for trace in self.traces.values():
                before = trace.records
                trace.read(now_ns)
                self.records += trace.records - before
                told += trace.told
                alarms += trace.alarms
                trace.told, trace.alarms = [], []
            self.ledger.add(told, now_ns)
            alarms += self._judge_together(now_ns)
            self._give_up(now_ns, alarms)
        return [alarm for alarm in alarms if self._first_time(alarm)]

    def _first_time(self, alarm: WatchAlarm) -> bool:
        if alarm.kind is not AlarmKind.VIOLATION:
            return True
        key = alarm.file, alarm.place, alarm.rule
        if key in self.named:
            return False
        self.named[key] = None
        if len(self.named) > MAX_NAMED:
            self.named.popitem(last=False)
        return True

    def resume(self) -> None:
        """Judge traces that are new since an earlier watch from their first record."""
        self._begun = True

    def _find(self, alarms: list[WatchAlarm]) -> None:
        """Begin to follow traces that are new."""
        for trace, parts in _parts(self.paths).items():
            if trace in self.traces:
                continue
            if trace in self.sizes:
                if parts[-1].stat().st_size == self.sizes[trace]:
                    continue
                del self.sizes[trace]
            self.traces[trace] = self._follow(trace, parts, alarms)
        self._begun = True

    def _follow(self, trace: str, parts: list[Path], alarms: list[WatchAlarm]) -> FollowedTrace:
        whole = self.whole or self._begun
        path = parts[0] if whole else parts[-1]
        offset = 0
        if not whole:
            try:
                offset = container.last_offset(path)
            except TraceError as error:
                alarms.append(WatchAlarm(AlarmKind.NOTE, "", path, "", 0, f"judged from its beginning: {error}"))
        joined = offset > 0 or part_of(path)[1] > 0
        return FollowedTrace(trace, GrowingTrace(path, offset), joined=joined)

    def _judge_together(self, now_ns: int) -> Iterator[WatchAlarm]:
        standings = [
            Standing(trace.witness, trace.whole, trace.ended, trace.read_ns)
            for trace in self.traces.values()
            if trace.witness is not None
        ]
        found = self.ledger.judge(standings, now_ns)
        for suspect in found.suspects:
            one = violation(suspect)
            trace = self.traces.get(part_of(one.path)[0])
            whose = "" if trace is None else trace.owner
            wall = None if trace is None or one.time is None else trace.wall_at(one.time)
            yield WatchAlarm(AlarmKind.VIOLATION, one.rule, one.path, whose, one.record, one.text, one.time, wall)
        for text in found.notes:
            yield WatchAlarm(AlarmKind.NOTE, "undecided", Path(), "", 0, text)

    def _give_up(self, now_ns: int, alarms: list[WatchAlarm]) -> None:
        """Stop following traces that ended, that were silent for long, or that are too many."""
        for name, trace in list(self.traces.items()):
            if trace.ended or now_ns - trace.read_ns > QUIET_NS:
                self._drop(name)
        while len(self.traces) > MAX_FOLLOWED:
            name = min(self.traces, key=lambda one: self.traces[one].read_ns)
            text = f"more than {MAX_FOLLOWED:,} traces at a time: this one is no longer followed"
            alarms.append(WatchAlarm(AlarmKind.NOTE, "", self.traces[name].file.path, "", 0, text))
            self._drop(name)

    def _drop(self, name: str) -> None:
        trace = self.traces.pop(name)
        if trace.witness is not None:
            ended = trace.closed
            self.ledger.end(Standing(trace.witness, trace.whole and ended, ended, trace.read_ns))
        try:
            self.sizes[name] = trace.file.path.stat().st_size
        except OSError:
            self.sizes[name] = -1


def _parts(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the parts of each trace that are there now, in order."""
    found: dict[str, list[Path]] = {}
    for path in dict.fromkeys(file for named in paths for file in _files(named)):
        found.setdefault(part_of(path)[0], []).append(path)
    return {trace: sorted(parts, key=part_of) for trace, parts in found.items()}


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from path.rglob(f"*{SUFFIX}")
    elif path.exists():
        yield path
    else:
        yield from (one for one in path.parent.glob(path.name) if one.name.endswith(SUFFIX))
