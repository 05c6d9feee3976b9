"""One trace that is judged while it grows: replay, the rules of one trace, and the facts for the rules between traces.

The steps are those of `trace_judge` and `frame_judge`, but a frame is judged in the portions in which it comes. A
portion in doubt is judged again with the whole frame so far, by the schema, so that the sentence names the record.
"""

import glob
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Role
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace import container, endpoint_rules
from stablecast.evidence.trace.converter import Endpoint, snapshot
from stablecast.evidence.trace.cross_rules import Told, Witness
from stablecast.evidence.trace.errors import SchemaError, TraceError
from stablecast.evidence.trace.facts import Book, Fact, gatherer, identity
from stablecast.evidence.trace.file_names import SUFFIX, part_of, part_path
from stablecast.evidence.trace.frame_judge import DAMAGE, FrameJudge, KnownState, RecordWatch, step_of
from stablecast.evidence.trace.frame_replay import BATCH, Answering
from stablecast.evidence.trace.frames import Foot, Head, TraceFrame, digest, object_of, unread_frames
from stablecast.evidence.trace.reports import TraceViolation
from stablecast.evidence.trace.rule_protocol import EndpointRule
from stablecast.evidence.trace.trace_judge import FrameLink, broken_beginning
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.fact_ledger import Standing
from stablecast.evidence.watch.growing_trace import FrameEnd, FrameStart, GrowingTrace, RecordLines, TracePart
from stablecast.evidence.watch.joint_judgement import TraceStanding

UNKNOWN: Final = Foot(0, "", closed=False)
"""The last line of a frame that goes on."""


@attrs.define
class _LiveFrame:
    """A frame that is being judged.

    Attributes:
        head, offset: Its first line, and where it begins.
        judge: The judge of the whole frame, which keeps the first violation of each rule.
        watch: The rules, as far as the records were seen; None if its snapshot is bad.
        answering: The machine in replay; None if the frame is in doubt.
        machine: That machine.
        standing: The rules.
        silent: Records from the beginning that were judged before a restart.
        readable: Whether its records can be decoded.
        count: Records so far.
        last_ns: The clock of the last record.
        named: Rules whose violation was reported.
        known: Whether the last portion was judged before a restart.
    """

    head: Head
    offset: int
    judge: FrameJudge
    watch: RecordWatch | None = None
    answering: Answering | None = None
    machine: Any = None
    standing: list[EndpointRule] | None = None
    silent: int = 0
    readable: bool = True
    count: int = 0
    last_ns: int = 0
    named: set[str] = attrs.field(factory=set)
    known: bool = False


@attrs.define
class FollowedTrace:
    """A trace; `read` judges what is new.

    Attributes:
        trace: The path of its first part.
        file: The part that is read.
        joined: Whether the trace is followed from its middle, so that what precedes is unknown.
        resumed: Whether a watch before this one judged what precedes.
        silent: Records of the first frame that it judged.
        link: What must follow the last frame.
        whole: Whether nothing is missing from the first followed record on.
        closed: Whether the endpoint ended its trace.
        broken: Whether it cannot be read further.
        records: Records judged.
        read_ns: The watch's clock when records came last.
        told: New facts; the reader takes them.
        alarms: New sentences; the reader takes them.
        witness: The trace as evidence.
        owner: Role and name of the endpoint.
        wall_ns: The wall clock of its host at time 0 of its clock, if known.
    """

    trace: str
    file: GrowingTrace
    joined: bool = False
    resumed: bool = False
    silent: int = 0
    link: FrameLink | None = None
    whole: bool = True
    closed: bool = False
    broken: bool = False
    records: int = 0
    read_ns: int = 0
    told: list[Told] = attrs.field(factory=list)
    alarms: list[WatchAlarm] = attrs.field(factory=list)
    witness: Witness | None = None
    owner: str = ""
    wall_ns: int | None = None
    _known: KnownState = attrs.field(factory=KnownState)
    _standing: list[EndpointRule] | None = None
    _frame: _LiveFrame | None = None

    @property
    def judged(self) -> int:
        """Return the records of the current frame that are judged."""
        frame = self._frame
        if frame is None:
            return self.silent
        return max(frame.count, frame.silent) if frame.offset == self.file.offset else 0

    @property
    def ended(self) -> bool:
        """Return whether nothing more is expected."""
        return self.closed or self.broken

    @property
    def standing(self) -> TraceStanding:
        """Return the trace as the rules between traces need it."""
        evidence = None if self.witness is None else Standing(self.witness, self.whole, self.ended, self.read_ns)
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
                for part in self.file.read():
                    self._take(part)
                    self.read_ns = now_ns
                if following is None or not self.file.between_frames:
                    break
                self.file = GrowingTrace(following)
        except TraceError as error:
            self.whole, self.broken = False, True
            self._say(AlarmKind.DAMAGE, "", 0, str(error), None)
        if self.ended:  # Its machine may be large, and only its facts are needed from now on.
            self._frame, self._standing, self._known = None, None, KnownState()

    def _skip_deleted(self) -> bool:
        """Go on with the oldest part that is left, if there is one: its recorder deleted the parts before."""
        part = part_of(self.file.path)[1]
        later = [one for one in parts_of(self.trace) if part_of(one)[1] > part]
        self.whole, self._standing, self.link, self.joined = False, None, None, True
        if not later:
            self.broken = True
            self._say(AlarmKind.NOTE, "", 0, "the trace was removed, and is no longer followed", None)
            return False
        self.file, self._frame = GrowingTrace(later[0]), None
        self._say(AlarmKind.NOTE, "", 0, "its recorder deleted records before they were judged", None)
        return True

    def _next_part(self) -> Path | None:
        """Return the next part of the trace if it is there; its writer has closed this one."""
        following = part_path(Path(self.trace), part_of(self.file.path)[1] + 1)
        return following if following.exists() else None

    def _take(self, part: TracePart) -> None:
        match part:
            case FrameStart(head, offset):
                self._begin(head, offset)
            case RecordLines(text):
                self._judge(text)
            case FrameEnd(foot):
                self._end(foot)
        self._gather()

    def _begin(self, head: Head, offset: int) -> None:
        path, began = self.file.path, TraceFrame(head, b"", UNKNOWN)
        fresh = offset == 0 or head.gap > 0 or self.link is None
        judge = FrameJudge(path, began, fresh=fresh, known=self._known)
        frame = self._frame = _LiveFrame(head, offset, judge, last_ns=head.time)
        frame.silent, self.silent = self.silent, 0
        frame.known = frame.silent > 0
        self.owner = " ".join(began.owner)
        self.wall_ns = head.wall - head.time if head.wall else self.wall_ns
        begin = FrameLink.before(began)
        if self.link is not None:
            judge.note(self.link.broken_by(begin, head.gap))
        elif not self.joined and not self.resumed:
            judge.note(broken_beginning(begin, head.gap))
        self.whole &= not head.gap and not self._malformed()
        if head.gap:
            self._standing = None
            text = f"its recorder dropped {head.gap:,} records before record {head.first:,}: the disk was too slow"
            self._say(AlarmKind.NOTE, "", head.first, text, head.time)
        self._prepare(frame)

    def _prepare(self, frame: _LiveFrame) -> None:
        """Restore the machine and the rules. The rules begin with the snapshot if the frame before was unreadable."""
        judge, head = frame.judge, frame.head
        try:
            frame.machine = self._known.machine_for(head)
            judge.address, judge.life, judge.patience = identity(frame.machine)
            frame.standing = endpoint_rules.begin(frame.machine) if self._standing is None else self._standing
            judge.book.record, judge.book.time = head.first, head.time
            facts = gatherer(frame.machine, judge.book, fresh=judge.fresh)
        except SchemaError as error:
            judge.violate(head.first, "schema", f"the snapshot before record {head.first} is {error}")
            frame.readable = False
            return
        except DAMAGE as error:
            judge.violate(head.first, "schema", f"the snapshot before record {head.first} makes no sense: {error!r}")
            frame.readable = False
            return
        if self.link is None and self.joined:
            _state_unknown_past(judge.book, frame.machine)
        frame.watch = RecordWatch(frame.standing, facts, judge.book, self._violate)
        frame.answering = Answering(judge.frame, frame.machine)
        self._testify(frame)

    def _violate(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        """Note a broken rule at the record that is being judged."""
        frame = self._frame
        assert frame is not None
        if rule not in frame.judge.found:
            time = frame.judge.book.time
            frame.judge.found[rule] = TraceViolation(self.file.path, record, rule, text, expected, found, time)

    def _judge(self, text: bytes) -> None:
        frame = self._frame
        assert frame is not None
        known = frame.silent - frame.count
        frame.known = known > 0
        if 0 < known < text.count(b"\n"):
            at = len(b"\n".join(text.split(b"\n", known)[:known])) + 1
            self._judge_portion(frame, text[:at])
            self._gather()
            frame.known, text = False, text[at:]
        self._judge_portion(frame, text)

    def _judge_portion(self, frame: _LiveFrame, text: bytes) -> None:
        at = 0
        while at < len(text) and frame.answering is not None and frame.watch is not None:
            end = text.find(b"\n", at + BATCH) + 1 or len(text)
            try:
                steps = frame.answering.to(text[at:end])
            except Exception:  # noqa: BLE001 - a forged record may make a machine fail in any way
                self._doubt(frame, frame.count + text.count(b"\n", at))
                return
            frame.watch.judge(steps)
            frame.last_ns = steps[-1][1]
            self._count(len(steps))
            at = end
        if at < len(text):
            self._judge_doubtful(text[at:])

    def _count(self, records: int) -> None:
        assert self._frame is not None
        self._frame.count += records
        self.records += records

    def _judge_doubtful(self, text: bytes) -> None:
        """Judge records of a frame that is in doubt by the rules alone; its replay has failed already."""
        frame = self._frame
        assert frame is not None
        for line in text.splitlines():
            self._count(1)
            if frame.readable and frame.watch is not None:
                number = frame.head.first + frame.count - 1
                try:
                    step = step_of(frame.head.role, object_of(line))
                except TraceError as error:
                    frame.readable = False
                    self._violate(number, "schema", f"record {number} is {error}")
                    continue
                frame.watch.judge([step])
                frame.last_ns = step[1]

    def _doubt(self, frame: _LiveFrame, count: int, foot: Foot | None = None) -> None:
        """Judge the first `count` records of the frame by the schema, to find the difference; `foot` if it is whole.

        The frame is read again.
        """
        frame.answering = None
        assert frame.watch is not None
        judge, before = frame.judge, frame.count
        again, _ = next(unread_frames(self.file.path, frame.offset))
        body = b"\n".join(again.body.split(b"\n", count)[:count]) + b"\n" if count else b""
        judge.frame = attrs.evolve(again, body=body, foot=foot or Foot(count, "", closed=False))
        try:
            frame.readable = judge.doubt(frame.watch)
            frame.last_ns = judge.frame.end
        except TraceError as error:
            frame.readable = False
            self._violate(frame.head.first + before, "schema", f"the records from {before} on are unreadable: {error}")
        self._count(count - before)

    def _end(self, foot: Foot) -> None:
        frame = self._frame
        assert frame is not None
        frame.known = False
        sound = frame.answering is not None and frame.count == foot.records
        if sound and foot.ends_known:
            sound = digest(snapshot(frame.machine)) == foot.digest
        if sound:
            self._standing = frame.standing
            self._known.learn(frame.machine, foot.digest)
        else:
            if frame.watch is not None:
                self._doubt(frame, frame.count, foot)
            self._standing = frame.standing if frame.readable else None
        self.link = FrameLink(
            frame.head.frame + 1,
            frame.head.first + frame.count,
            foot.digest,
            frame.last_ns,
            frame.head.role.name.lower(),
            frame.head.endpoint,
        )
        self.closed = foot.closed

    def _malformed(self) -> bool:
        """Return whether the form of the trace is broken, so that it is no complete witness."""
        found = {} if self._frame is None else self._frame.judge.found
        return not found.keys().isdisjoint(("numbering", "chain", "schema"))

    def _gather(self) -> None:
        """Take the facts and the violations of the last portion, but for those that a watch before took."""
        frame = self._frame
        if frame is None:
            return
        judge, path = frame.judge, str(self.file.path)
        if not frame.known:
            self.told += [Told(self.trace, path, frame.offset, fact) for fact in judge.book.facts if self._counts(fact)]
            for pause in judge.book.pauses:
                text = f"nothing became stable for {(pause.ended - pause.began) / SECOND:.1f} s, until now"
                self._say(AlarmKind.NOTE, "pause", pause.record, text, pause.ended)
        judge.book.facts.clear()
        judge.book.newest.clear()
        judge.book.pauses.clear()
        self.whole &= not self._malformed()
        self._testify(frame)
        for rule, one in judge.found.items():
            if rule not in frame.named:
                frame.named.add(rule)
                if not frame.known:
                    self._say(AlarmKind.VIOLATION, rule, one.record, one.text, one.time)

    def _counts(self, fact: Fact) -> bool:
        """Return whether a fact counts: the clients that a store began with do not if its beginning is not followed."""
        return fact.kind != "began" or not self.joined

    def _testify(self, frame: _LiveFrame) -> None:
        """Describe the trace as evidence; `fact_ledger` decides whether it is complete.

        The clients of a store are known by their addresses if their traces have all that they sent.
        """
        judge, role = frame.judge, frame.head.role
        address = "" if self.joined and role is not Role.STORE else judge.address
        self.witness = Witness(self.trace, role, address, judge.life, False, frame.last_ns, judge.patience)

    def _say(self, kind: AlarmKind, rule: str, place: int, text: str, time: int | None) -> None:
        wall = None if time is None else self.wall_at(time)
        self.alarms.append(WatchAlarm(kind, rule, self.file.path, self.owner, place, text, time, wall))

    def wall_at(self, time_ns: int) -> int | None:
        """Return the wall clock of the endpoint's host at a time of its own clock (ns), if the trace has it."""
        return None if self.wall_ns is None else self.wall_ns + time_ns


def begun(trace: str, parts: list[Path], *, whole: bool) -> FollowedTrace:
    """Return a trace that is followed from its first record, or from its newest frame.

    Args:
        trace: The path of its first part.
        parts: The parts that are there, in order, at least one.
        whole: Whether to begin with the first record.
    """
    if whole:
        return FollowedTrace(trace, GrowingTrace(parts[0]), joined=part_of(parts[0])[1] > 0)
    path = parts[-1]
    try:
        offset, error = container.last_offset(path), None
    except TraceError as found:
        offset, error = 0, found
    joined = offset > 0 or part_of(path)[1] > 0
    followed = FollowedTrace(trace, GrowingTrace(path, offset), joined=joined)
    if error is not None:
        followed.alarms.append(WatchAlarm(AlarmKind.NOTE, "", path, "", 0, f"judged from its beginning: {error}"))
    return followed


def _state_unknown_past(book: Book, machine: Endpoint) -> None:
    """State that a source sent everything below its next number, where no trace of that is followed."""
    if isinstance(machine, SourceEndpoint):
        book.note("sent", machine.config.incarnation, 0, machine.next_number - 1)
        book.note("reach", machine.config.incarnation, -1, machine.next_number - 1)


def parts_of(trace: str) -> list[Path]:
    """Return the parts of a trace that are there, in order."""
    first = Path(trace)
    stem = first.name.removesuffix(SUFFIX)
    found = [one for one in first.parent.glob(f"{glob.escape(stem)}*{SUFFIX}") if part_of(one)[0] == trace]
    return sorted(found, key=lambda one: part_of(one)[1])
