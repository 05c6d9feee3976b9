"""One trace that is followed while it grows: its judge is that of a trace that has ended."""

import glob
from pathlib import Path

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace import container
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import SUFFIX, part_of, part_path
from stablecast.evidence.trace.frames import FramePortion, FrameReader
from stablecast.evidence.trace.trace_judge import TraceJudge
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.fact_ledger import Standing
from stablecast.evidence.watch.joint_judgement import TraceStanding


@attrs.define
class FollowedTrace:
    """A trace; `read` judges what is new.

    Attributes:
        judge: The judge of the trace; `told` has new facts, which the reader removes.
        file: The part that is read.
        silent: Records of the first frame that a watch before this one judged.
        closed: Whether the endpoint ended its trace.
        broken: Whether it cannot be read further.
        records: Records judged.
        read_ns: The watch's clock when records came last.
        alarms: New sentences; the reader removes them.
        owner: Role and name of the endpoint.
        wall_ns: The wall clock of its host at time 0 of its clock, if known.
    """

    judge: TraceJudge
    file: FrameReader
    silent: int = 0
    closed: bool = False
    broken: bool = False
    records: int = 0
    read_ns: int = 0
    alarms: list[WatchAlarm] = attrs.field(factory=list)
    owner: str = ""
    wall_ns: int | None = None

    @property
    def judged(self) -> int:
        """Return the records of the current frame that are judged."""
        frame = self.judge.frame
        return self.silent + (0 if frame is None or frame.offset != self.file.offset else frame.count)

    @property
    def ended(self) -> bool:
        """Return whether nothing more is expected."""
        return self.closed or self.broken

    @property
    def standing(self) -> TraceStanding:
        """Return the trace as the rules between traces need it."""
        witness = self.judge.witness
        evidence = None if witness is None else Standing(witness, self.judge.whole, self.ended, self.read_ns)
        more = self.closed, self.ended, self.owner, self.wall_ns, self.records, self.read_ns
        return TraceStanding(self.file.path, evidence, *more)

    def read(self, now_ns: int) -> None:
        """Judge what is new, at this time of the watch's clock."""
        if self.broken:
            return
        try:
            if not self.file.path.exists() and not self._skip_deleted():
                return
            while True:
                following = self._next_part()
                for portion in self.file.read():
                    self._judge(portion)
                    self.read_ns = now_ns
                if following is None or not self.file.between_frames:
                    break
                self.file = FrameReader.at(following)
        except TraceError as error:
            self.judge.whole, self.broken = False, True
            self._report(AlarmKind.DAMAGE, "", 0, str(error), None)
        if self.ended:
            self.judge.end()

    def _skip_deleted(self) -> bool:
        """Go on with the oldest part that is left, if there is one: its recorder deleted the parts before."""
        judge, part = self.judge, part_of(self.file.path)[1]
        later = [one for one in parts_of(judge.trace) if part_of(one)[1] > part]
        judge.whole, judge.standing, judge.link, judge.joined = False, None, None, True
        if not later:
            self.broken = True
            self._report(AlarmKind.NOTE, "", 0, "the trace was removed, and is no longer followed", None)
            return False
        self.file, self.silent = FrameReader.at(later[0]), 0
        self._report(AlarmKind.NOTE, "", 0, "its recorder deleted records before they were judged", None)
        return True

    def _next_part(self) -> Path | None:
        """Return the next part of the trace if it is there; its writer has closed this one."""
        following = part_path(Path(self.judge.trace), part_of(self.file.path)[1] + 1)
        return following if following.exists() else None

    def _judge(self, portion: FramePortion) -> None:
        head = portion.head
        self.owner = " ".join(portion.frame.owner)
        self.wall_ns = head.wall - head.time if head.wall else self.wall_ns
        if self.silent:
            known, portion = portion.cut(self.silent)
            told = len(self.judge.told)
            self._pass_on(known)
            del self.judge.told[told:]
            self.judge.found.clear()
            self.judge.pauses.clear()
            self.silent -= known.frame.count
        elif portion.begins and head.gap:
            text = f"its recorder dropped {head.gap:,} records before record {head.first:,}: the disk was too slow"
            self._report(AlarmKind.NOTE, "", head.first, text, head.time)
        self._pass_on(portion)
        for pause in self.judge.pauses:
            text = f"nothing became stable for {(pause.ended - pause.began) / SECOND:.1f} s, until now"
            self._report(AlarmKind.NOTE, "pause", pause.record, text, pause.ended)
        for one in self.judge.found:
            self._report(AlarmKind.VIOLATION, one.rule, one.record, one.text, one.time)
        self.judge.found.clear()
        self.judge.pauses.clear()

    def _pass_on(self, portion: FramePortion) -> None:
        self.judge.judge(self.file.path, portion)
        self.records += portion.frame.count
        self.closed = portion.foot is not None and portion.foot.closed

    def _report(self, kind: AlarmKind, rule: str, place: int, text: str, time: int | None) -> None:
        wall = None if time is None or self.wall_ns is None else self.wall_ns + time
        self.alarms.append(WatchAlarm(kind, rule, self.file.path, self.owner, place, text, time, wall))


def begun(trace: str, parts: list[Path], *, whole: bool) -> FollowedTrace:
    """Return a trace that is followed from its first record, or from its newest frame.

    Args:
        trace: The path of its first part.
        parts: The parts that are there, in order, at least one.
        whole: Whether to begin with the first record.
    """
    if whole:
        return FollowedTrace(TraceJudge(trace, joined=part_of(parts[0])[1] > 0), FrameReader.at(parts[0]))
    path = parts[-1]
    try:
        offset, error = container.last_offset(path), None
    except TraceError as found:
        offset, error = 0, found
    joined = offset > 0 or part_of(path)[1] > 0
    followed = FollowedTrace(TraceJudge(trace, joined=joined), FrameReader.at(path, offset))
    if error is not None:
        followed.alarms.append(WatchAlarm(AlarmKind.NOTE, "", path, "", 0, f"judged from its beginning: {error}"))
    return followed


def parts_of(trace: str) -> list[Path]:
    first = Path(trace)
    stem = first.name.removesuffix(SUFFIX)
    found = [one for one in first.parent.glob(f"{glob.escape(stem)}*{SUFFIX}") if part_of(one)[0] == trace]
    return sorted(found, key=lambda one: part_of(one)[1])
