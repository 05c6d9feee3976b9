"""Judge traces: the same core, with the same inputs, must answer with the same effects.

`evidence.rules.judges.TRACE_FORM` lists the rules about the form of a trace and its replay; `endpoint_rules` and
`cross_rules` do not depend on replay. Each rule is reported once for each frame, with the first record that breaks it,
because all records after a difference differ too.

The record of a suspect: the frame that it points to is read again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.protocol.messages import Incarnation, Role
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.cross_rules import Suspect, Told, Witness, judge_across
from stablecast.evidence.trace.errors import TraceError, TruncatedError
from stablecast.evidence.trace.facts import Book, StabilityPause
from stablecast.evidence.trace.file_names import part_of, traces_of
from stablecast.evidence.trace.frame_judge import FrameJudge, KnownState
from stablecast.evidence.trace.frames import Foot, FramePortion, FrameReader, Head
from stablecast.evidence.trace.reports import FileReport, TraceViolation, VerificationSummary
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
    def before(cls, head: Head) -> "FrameLink":
        """Return the link with which a frame begins."""
        return cls(head.frame, head.first, head.digest, head.time, head.role.name.lower(), head.endpoint)

    @classmethod
    def behind(cls, frame: FrameJudge, foot: Foot) -> "FrameLink":
        """Return the link that must follow a frame."""
        head = frame.head
        role = head.role.name.lower()
        return cls(head.frame + 1, head.first + frame.count, foot.digest, frame.last_ns, role, head.endpoint)

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


MALFORMED: Final = frozenset(("numbering", "chain", "schema"))
"""Rules about the form of a trace: one that breaks them is no complete witness."""


@attrs.define
class TraceJudge:
    """The judge of one trace, portion by portion.

    Attributes:
        trace: The path of its first part.
        joined: Whether the trace is followed from its middle, so that what precedes is unknown.
        resumed: Whether what precedes was judged before, or is missing.
        whole: Whether nothing is missing from the first judged record on.
        link, known, standing: The state after the last frame.
        frame: The frame that is being judged, or was judged last.
        witness: The trace as evidence.
        told, found, pauses: New facts, violations and pauses of a source; the reader removes them.
    """

    trace: str
    joined: bool = False
    resumed: bool = False
    whole: bool = True
    link: FrameLink | None = None
    known: KnownState = attrs.field(factory=KnownState)
    standing: list[EndpointRule] | None = None
    frame: FrameJudge | None = None
    witness: Witness | None = None
    told: list[Told] = attrs.field(factory=list)
    found: list[TraceViolation] = attrs.field(factory=list)
    pauses: list[StabilityPause] = attrs.field(factory=list)
    _named: set[str] = attrs.field(factory=set)

    def judge(self, path: Path, portion: FramePortion) -> None:
        """Judge the next records of the trace, in this part of it. Raise TraceError if they cannot be read."""
        if portion.begins:
            self.frame = self._begin(path, portion)
        frame = self.frame
        assert frame is not None
        frame.judge(portion)
        if portion.foot is not None:
            self.standing, self.link = frame.standing, FrameLink.behind(frame, portion.foot)
        self._take(path, frame)

    def _begin(self, path: Path, portion: FramePortion) -> FrameJudge:
        head, link = portion.head, self.link
        frame = FrameJudge.of(path, portion, self.known, fresh=link is None)
        begin = FrameLink.before(head)
        if link is not None:
            frame.note(link.broken_by(begin, head.gap))
        elif not self.joined and not self.resumed:
            frame.note(broken_beginning(begin, head.gap))
        frame.begin(None if head.gap else self.standing)
        if link is None and self.joined and isinstance(frame.machine, SourceEndpoint):
            state_unknown_past(frame.book, frame.machine)
        self.whole &= not head.gap
        self._named.clear()
        return frame

    def _take(self, path: Path, frame: FrameJudge) -> None:
        """Take the findings of a portion, and describe the trace as evidence.

        The clients of a store are known by their addresses if their traces have all that they sent.
        """
        book, role = frame.book, frame.head.role
        # The clients that a store began with are unknown if its beginning is not followed.
        facts = [fact for fact in book.facts if fact.kind != "began" or not self.joined]
        self.told += [Told(self.trace, str(path), frame.offset, fact) for fact in facts]
        self.pauses += book.pauses
        self.found += sorted(
            (one for rule, one in frame.found.items() if rule not in self._named), key=lambda one: one.record
        )
        self._named.update(frame.found)
        book.forget()
        self.whole &= MALFORMED.isdisjoint(frame.found)
        address = "" if self.joined and role is not Role.STORE else frame.address
        self.witness = Witness(self.trace, role, address, frame.life, False, frame.last_ns, frame.patience)

    def forget(self) -> None:
        """Remove the new facts and findings, because they were reported."""
        for some in (self.told, self.found, self.pauses):
            some.clear()


def state_unknown_past(book: Book, source: SourceEndpoint) -> None:
    """State that a source sent everything below its next number, where no trace of that is followed."""
    book.note("sent", source.config.incarnation, 0, source.next_number - 1)
    book.note("reach", source.config.incarnation, -1, source.next_number - 1)


@attrs.define
class EndedTrace:
    """A trace that has ended: its parts are followed to their ends, one after the other."""

    judge: TraceJudge
    told: list[Told] = attrs.field(factory=list)
    reports: list[FileReport] = attrs.field(factory=list)

    def follow(self, path: Path, progress: Progress | None = None) -> FileReport:
        """Judge a part as far as it can be read."""
        report, judge = FileReport(path), self.judge
        if self.reports:
            self.reports[-1].closed = True
        self.reports.append(report)
        try:
            for portion in FrameReader.at(path).read(ended=True):
                if judge.resumed and judge.link is None:
                    report.missing = portion.head.first - portion.head.gap
                judge.judge(path, portion)
                report.take(portion, judge.found, judge.pauses)
                self.told += judge.told
                judge.forget()
                if progress is not None:
                    progress(portion.frame.count)
        except TraceError as error:
            report.error = str(error)
            report.truncated = isinstance(error, TruncatedError)
            judge.whole = False
        return report

    def close(self) -> Witness | None:
        """Return the trace as evidence."""
        witness, whole = self.judge.witness, self.judge.whole and self.reports[-1].closed
        return None if witness is None else attrs.evolve(witness, complete=whole)


def ended(parts: Sequence[Path], progress: Progress | None = None) -> EndedTrace:
    """Judge these parts of one trace."""
    trace, part = part_of(parts[0])
    found = EndedTrace(TraceJudge(trace, resumed=part > 0, whole=part == 0))
    for path in parts:
        found.follow(path, progress)
    return found


def verify_file(path: Path, progress: Progress | None = None) -> FileReport:
    """Judge one trace alone, as far as it can be read.

    Args:
        path: The trace.
        progress: Told after each frame how many records it had.
    """
    return ended([path], progress).reports[0]


def verify_paths(paths: Iterable[Path], progress: Progress | None = None) -> VerificationSummary:
    """Judge each of these traces, and compare them with each other."""
    return summarize(judge_paths(paths, progress))


def judge_paths(paths: Iterable[Path], progress: Progress | None = None) -> list[EndedTrace]:
    """Judge each of these traces by itself."""
    return [ended(parts, progress) for parts in traces_of(paths)]


def summarize(traces: list[EndedTrace]) -> VerificationSummary:
    """Return the findings in each trace and between them."""
    witnesses = [witness for trace in traces if (witness := trace.close()) is not None]
    finding = judge_across((told for trace in traces for told in trace.told), witnesses)
    summary = VerificationSummary([report for trace in traces for report in trace.reports], finding.untold)
    summary.add(violation(suspect) for suspect in finding.suspects)
    return summary


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
        portion = next(FrameReader.at(path, suspect.offset).read(ended=True))
        judge = FrameJudge.of(path, portion)
        judge.book = search
        judge.begin()
        judge.judge(portion)
    return search.found or (suspect.record, None)
