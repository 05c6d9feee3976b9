"""Judge traces: the same core, with the same inputs, must answer with the same effects.

`evidence.rules.judges.TRACE_FORM` lists the rules about the form of a trace and its replay; `endpoint_rules` and
`cross_rules` do not depend on replay. Each rule is reported once for each frame, with the first record that breaks it,
because all records after a difference differ too.

The record of a suspect: the frame that it points to is read again.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.trace.cross_rules import Suspect, Told, Witness, judge_across
from stablecast.evidence.trace.errors import TraceError, TruncatedError
from stablecast.evidence.trace.facts import Book
from stablecast.evidence.trace.file_names import part_of, traces_of
from stablecast.evidence.trace.frame_judge import FrameJudge, KnownState
from stablecast.evidence.trace.frames import TraceFrame, frames_from, unread_frames
from stablecast.evidence.trace.reports import MAX_VIOLATIONS, FileReport, TraceViolation, VerificationSummary
from stablecast.evidence.trace.rule_protocol import EndpointRule

Progress = Callable[[int], None]
"""Take the number of records of each frame that was judged."""


Broken = tuple[int, str, str, Any, Any]
"""Record, rule, sentence, expected and found value."""


@attrs.frozen
class FrameLink:
    """The joint between two frames: index, first record, snapshot, clock and owner of the next one."""

    frame: int
    first: int
    digest: str
    time: int
    role: str
    endpoint: str

    @classmethod
    def behind(cls, frame: TraceFrame) -> "FrameLink":
        """Return the link that must follow this frame."""
        head, count = frame.head, frame.count
        return cls(head.frame + 1, head.first + count, frame.foot.digest, frame.end, *frame.owner)

    @classmethod
    def before(cls, frame: TraceFrame) -> "FrameLink":
        """Return the link with which this frame begins."""
        head = frame.head
        return cls(head.frame, head.first, head.digest, head.time, *frame.owner)

    def broken_by(self, begin: "FrameLink", gap: int) -> Iterator[Broken]:
        """Yield the differences to a frame that begins like this."""
        first, expected = begin.first, self.first + gap
        if (begin.frame, first) != (self.frame, expected):
            text = f"expected frame {self.frame} with record {expected}, found frame {begin.frame} with record {first}"
            yield min(expected, first), "numbering", text, [self.frame, expected], [begin.frame, first]
        if (begin.role, begin.endpoint) != (self.role, self.endpoint):
            mine, theirs = f"{begin.role} {begin.endpoint}", f"{self.role} {self.endpoint}"
            text = f"record {first} belongs to {mine}, what precedes it to {theirs}"
            yield first, "chain", text, [self.role, self.endpoint], [begin.role, begin.endpoint]
        if not gap and begin.digest != self.digest:
            text = f"the snapshot before record {first} is not the state that the frame before ended with"
            yield first, "chain", text, self.digest, begin.digest
        if begin.time < self.time:
            yield first, "time", f"record {first} is earlier than what precedes it", self.time, begin.time


def broken_beginning(begin: FrameLink, gap: int) -> Iterator[Broken]:
    """Yield the defects of the first frame of a trace."""
    if begin.frame or begin.first != gap:
        text = f"the trace begins with frame {begin.frame}, record {begin.first}: what precedes it is missing"
        yield 0, "numbering", text, [0, gap], [begin.frame, begin.first]


@attrs.define
class TraceJudge:
    """The judge of one trace, part by part.

    `link`, `standing` and `known` are the state after the frame before, `told` its facts.
    """

    link: FrameLink | None = None
    standing: list[EndpointRule] | None = None
    whole: bool = True
    reports: list[FileReport] = attrs.field(factory=list)
    told: list[Told] = attrs.field(factory=list)
    witness: Witness | None = None
    known: KnownState = attrs.field(factory=KnownState)

    def judge_file(self, path: Path, progress: Progress | None = None) -> FileReport:
        """Judge one file as far as it can be read."""
        report = FileReport(path)
        if self.reports:
            self.reports[-1].closed = True
        self.reports.append(report)
        try:
            for frame, offset in unread_frames(path):
                self._judge(path, frame, offset, report)
                if progress is not None:
                    progress(frame.count)
        except TraceError as error:
            report.error = str(error)
            report.truncated = isinstance(error, TruncatedError)
            self.whole = False
        self._testify(report)
        return report

    def _judge(self, path: Path, frame: TraceFrame, offset: int, report: FileReport) -> None:
        begin, gap = FrameLink.before(frame), frame.head.gap
        judge = FrameJudge(path, frame, fresh=offset == 0 or gap > 0, known=self.known)
        if self.link is not None:
            judge.note(self.link.broken_by(begin, gap))
        elif part_of(path)[1] == 0:
            judge.note(broken_beginning(begin, gap))
        else:
            self.whole = False
            report.missing = begin.first - gap
        self.standing = judge.run(None if frame.head.gap else self.standing)
        self.link = FrameLink.behind(frame)
        trace = part_of(path)[0]
        self.told += [Told(trace, str(path), offset, fact) for fact in judge.book.facts]
        self.whole &= not frame.head.gap
        self.witness = Witness(trace, frame.head.role, judge.address, judge.life, False, self.link.time, judge.patience)
        report.pauses += judge.book.pauses
        _take(report, frame, judge.found.values())

    def _testify(self, report: FileReport) -> None:
        """Decide whether the trace is a complete witness: nothing is missing, and its form is intact."""
        broken = any(one.rule in ("numbering", "chain", "schema") for one in report.violations)
        self.whole &= not broken
        if self.witness is not None:
            self.witness = attrs.evolve(self.witness, complete=self.whole and report.closed)


def verify_file(path: Path, progress: Progress | None = None) -> FileReport:
    """Judge one trace alone, as far as it can be read.

    Args:
        path: The trace.
        progress: Told after each frame how many records it had.
    """
    return TraceJudge().judge_file(path, progress)


def verify_paths(paths: Iterable[Path], progress: Progress | None = None) -> VerificationSummary:
    """Judge each of these traces, and compare them with each other."""
    return summarize(judge_paths(paths, progress))


def judge_paths(paths: Iterable[Path], progress: Progress | None = None) -> list[TraceJudge]:
    """Judge each of these traces by itself."""
    judges = []
    for parts in traces_of(paths):
        judge = TraceJudge()
        for path in parts:
            judge.judge_file(path, progress)
        judges.append(judge)
    return judges


def summarize(judges: list[TraceJudge]) -> VerificationSummary:
    """Return the findings in each trace and between them."""
    witnesses = [judge.witness for judge in judges if judge.witness is not None]
    finding = judge_across((told for judge in judges for told in judge.told), witnesses)
    summary = VerificationSummary([report for judge in judges for report in judge.reports], finding.untold)
    summary.add(violation(suspect) for suspect in finding.suspects)
    return summary


def _take(report: FileReport, frame: TraceFrame, found: Iterable[TraceViolation]) -> None:
    report.role, report.endpoint = frame.owner
    report.frames += 1
    report.records += frame.count
    report.gaps += frame.head.gap
    report.closed = frame.foot.closed
    room = MAX_VIOLATIONS - len(report.violations)
    report.violations += sorted(found, key=lambda violation: violation.record)[:room]


TEXTS: Final = {
    "S1": "number {number} is reported stable, and too few stores hold it by their own traces",
    "S2": "number {number} is reported stable by life {life:#x} although it is stable for an earlier life",
    "S3": "number {number} of life {life:#x} is cut, although its source reports it stable",
    "P6": "number {number} counts as acknowledged by {peer}, whose trace has no such acknowledgement",
    "D1": "number {number} is delivered as one of life {life:#x}, which never sent it",
    "A3": "everything up to {number} counts as consumed by {peer}, whose trace has no such acknowledgement",
    "H1": "the {kind} {number} came to this endpoint, and the complete traces of its sender{senders} do not have it",
    "E4": "a second proxy stands in for the source with RegID {number}, and lasts",
}
"""The sentence of each rule across endpoints about a record."""


_ARRIVED: Final = {
    "listened": "control message of the digest",
    "announced": "announcement of number",
    "wrote": "message with number",
}
"""The names of what arrived, by the kind of its fact."""


@attrs.define
class _Search(Book):
    """A book that looks for the first fact that matches a suspect."""

    wanted: Suspect | None = None
    found: tuple[int, int] | None = None

    def note(self, kind: str, life: Incarnation, first: int, last: int, peer: str = "") -> None:
        """Compare a fact with the suspect, without joining neighbours."""
        wanted = self.wanted
        assert wanted is not None
        if self.found is None and (kind, life, peer) == (wanted.kind, wanted.life, wanted.peer):
            hit = min(first, last) <= wanted.number <= max(first, last)
            self.found = (self.record, self.time) if hit else None


def violation(suspect: Suspect) -> TraceViolation:
    """Return the violation of a suspect, with its exact record."""
    path = Path(suspect.path)
    record, time = _place(path, suspect)
    kind = _ARRIVED.get(suspect.kind, suspect.kind)
    senders = f" ({', '.join(suspect.senders)})" if suspect.senders else ""
    text = TEXTS[suspect.rule].format(
        number=suspect.number, life=suspect.life, peer=suspect.peer, kind=kind, senders=senders
    )
    found = {"kind": suspect.kind, "life": f"{suspect.life:#x}", "peer": suspect.peer, "number": suspect.number}
    return TraceViolation(path, record, suspect.rule, f"record {record}: {text}", None, found, time)


def _place(path: Path, suspect: Suspect) -> tuple[int, int | None]:
    """Return the record and its time, or the suspect's own if the file changed meanwhile."""
    search = _Search(wanted=suspect)
    with suppress(TraceError, StopIteration):
        frame, offset = next(frames_from(path, suspect.offset))
        FrameJudge(path, frame, offset == 0 or frame.head.gap > 0, book=search).run(None)
    return search.found or (suspect.record, None)
