"""All traces of some directories and files, followed while they grow.

`poll` reads what is new of each trace, judges it, and returns the sentences. A caller that has no clock of its own,
such as a test, gives any times that rise.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from stablecast.evidence.trace.cross_ground import Told
from stablecast.evidence.trace.file_names import SUFFIX, part_of
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.followed_trace import FollowedTrace, begun
from stablecast.evidence.watch.joint_judgement import QUIET_NS, JointJudgement, TraceStanding
from stablecast.runtime import garbage_collection

MAX_FOLLOWED: Final = 4096
"""Traces that are followed at a time; the one that was silent for longest is given up for a new one."""


@attrs.define
class TraceWatch:
    """The followed traces, and the rules between them.

    Attributes:
        paths: Directories, files and patterns.
        whole: Whether traces that are there at the beginning are judged from their first record.
        traces: The followed traces, by the path of their first part.
        joint: The rules between traces.
        sizes: Traces that were given up or ended, with the bytes of their last file.
        records: Records judged.
    """

    paths: list[Path]
    whole: bool = False
    traces: dict[str, FollowedTrace] = attrs.field(factory=dict)
    joint: JointJudgement = attrs.field(factory=JointJudgement)
    sizes: dict[str, int] = attrs.field(factory=dict)
    records: int = 0
    _begun: bool = False

    def poll(self, now_ns: int) -> list[WatchAlarm]:
        """Judge what is new, at this time of the caller's clock (ns), and return its sentences."""
        alarms: list[WatchAlarm] = []
        with garbage_collection.paused():
            self._find()
            told: list[Told] = []
            for trace in self.traces.values():
                before = trace.records
                trace.read(now_ns)
                self.records += trace.records - before
                told += trace.judge.told
                alarms += trace.alarms
                trace.judge.told, trace.alarms = [], []
            alarms += self.joint.judge(told, self.standings(), now_ns)
            self._give_up(now_ns, alarms)
        return [alarm for alarm in alarms if self.joint.first_time(alarm)]

    def standings(self) -> dict[str, TraceStanding]:
        return {name: trace.standing for name, trace in self.traces.items()}

    @property
    def read(self) -> bool:
        return self._begun

    def resume(self) -> None:
        """Judge traces that are new since an earlier watch from their first record."""
        self._begun = True

    def _find(self) -> None:
        """Begin to follow traces that are new."""
        for trace, parts in parts_by_trace(self.paths).items():
            if trace in self.traces:
                continue
            if trace in self.sizes:
                if parts[-1].stat().st_size == self.sizes[trace]:
                    continue
                del self.sizes[trace]
            self.traces[trace] = begun(trace, parts, whole=self.whole or self._begun)
        self._begun = True

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
        self.joint.end(trace.standing)
        try:
            self.sizes[name] = trace.file.path.stat().st_size
        except OSError:
            self.sizes[name] = -1


def parts_by_trace(paths: Iterable[Path]) -> dict[str, list[Path]]:
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
