"""Judge traces: the same core, with the same inputs, must answer with the same effects.

`evidence.rules.judges.TRACE_FORM` lists the rules about the form of a trace and its replay; `endpoint_rules` and
`cross_rules` do not depend on replay. Each rule is reported once for each frame, with the first record that breaks it,
because all records after a difference differ too.

The record of a suspect: the frame that it points to is read again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.protocol.messages import Incarnation, Role
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.cross_ground import Told, Witness
from stablecast.evidence.trace.cross_rules import Suspect, by_kind, judge_across
from stablecast.evidence.trace.errors import TraceError, TruncatedError
from stablecast.evidence.trace.facts import Book, StabilityPause
from stablecast.evidence.trace.file_names import part_of, traces_of
from stablecast.evidence.trace.frame_judge import FrameJudge, KnownState
from stablecast.evidence.trace.frame_link import Broken, FrameLink, broken_beginning
from stablecast.evidence.trace.frames import FramePortion, FrameReader
from stablecast.evidence.trace.presence import absent, doubled
from stablecast.evidence.trace.reports import (
    MAX_VIOLATIONS,
    FileReport,
    FrameVerdict,
    TraceViolation,
    VerificationSummary,
)
from stablecast.evidence.trace.rule_protocol import EndpointRule

Progress = Callable[[int], None]
"""Take the number of records of each frame that was judged."""


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

    def judge(self, path: Path, portion: FramePortion) -> FrameVerdict:
        """Judge the next records of the trace, in this part of it. Raise TraceError if they cannot be read."""
        frame = self.frame
        if portion.begins or frame is None:
            frame = self.frame = FrameJudge.of(path, portion, self.known, fresh=self.link is None)
            frame.begin(None if portion.head.gap else self.standing)
            if self.link is None and self.joined and isinstance(frame.machine, SourceEndpoint):
                state_unknown_past(frame.book, frame.machine)
        frame.judge(portion)
        verdict = frame.verdict(portion)
        self.take(verdict)
        if verdict.behind is not None:
            self.standing = frame.standing
        return verdict

    def take(self, verdict: FrameVerdict) -> None:
        """Take the verdict on the next records of the trace, which may come from another process.

        The clients of a store are known by their addresses if their traces have all that they sent.
        """
        if verdict.begins:
            self._named.clear()
            self.whole &= not verdict.gap
        found = [*self._broken_joint(verdict), *verdict.found]
        for one in sorted(found, key=lambda one: one.record):
            if one.rule not in self._named:
                self.found.append(one)
            self._named.add(one.rule)
        # The clients that a store began with are unknown if its beginning is not followed.
        facts = [fact for fact in verdict.facts if fact.kind != "began" or not self.joined]
        self.told += [Told(self.trace, str(verdict.path), verdict.offset, fact) for fact in facts]
        self.pauses += verdict.pauses
        self.whole &= MALFORMED.isdisjoint(self._named)
        seen = verdict.witness
        address = "" if self.joined and seen.role is not Role.STORE else seen.address
        self.witness = attrs.evolve(seen, trace=self.trace, address=address)
        self.link = verdict.behind or self.link

    def _broken_joint(self, verdict: FrameVerdict) -> Iterator[TraceViolation]:
        """Yield the defects of the joint between the frame before and this one."""
        broken: Iterator[Broken] = iter(())
        if verdict.begins and self.link is not None:
            broken = self.link.broken_by(verdict.begin, verdict.gap)
        elif verdict.begins and not self.joined and not self.resumed:
            broken = broken_beginning(verdict.begin, verdict.gap)
        for record, rule, text, expected, found in broken:
            time = verdict.start if record == verdict.begin.first else verdict.begin.time
            yield TraceViolation(verdict.path, record, rule, text, expected, found, time)

    def forget(self) -> None:
        """Remove the new facts and findings, because they were reported."""
        for some in (self.told, self.found, self.pauses):
            some.clear()

    def end(self) -> None:
        """Forget the machine, which may be large: only facts are needed from now on."""
        self.frame, self.standing, self.known = None, None, KnownState()


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

    @classmethod
    def of(cls, parts: Sequence[Path]) -> "EndedTrace":
        trace, part = part_of(parts[0])
        return cls(TraceJudge(trace, whole=part == 0))

    def follow(self, path: Path, verdicts: Iterable[FrameVerdict]) -> FileReport:
        """Take the verdicts on the frames of a part; `verdicts` raises TraceError where it cannot be read further."""
        report, judge = FileReport(path), self.judge
        judge.resumed |= part_of(path)[1] > 0
        if self.reports:
            self.reports[-1].closed = True
        self.reports.append(report)
        try:
            for one in verdicts:
                if judge.resumed and not any(before.frames for before in self.reports):
                    report.missing = one.begin.first - one.gap
                report.take(one, judge.found, judge.pauses)
                self.told += judge.told
                judge.forget()
        except TraceError as error:
            report.error = str(error)
            report.truncated = isinstance(error, TruncatedError)
            judge.whole = False
        return report

    def close(self) -> Witness | None:
        witness, whole = self.judge.witness, self.judge.whole and self.reports[-1].closed
        return None if witness is None else attrs.evolve(witness, complete=whole)


def _judged(judge: TraceJudge, path: Path, progress: Progress | None) -> Iterator[FrameVerdict]:
    """Yield the verdicts on the frames of a file. Raise TraceError where it cannot be read further."""
    for portion in FrameReader.at(path).read(ended=True):
        verdict = judge.judge(path, portion)
        yield verdict
        if progress is not None:
            progress(verdict.count)


def ended(parts: Sequence[Path], progress: Progress | None = None) -> EndedTrace:
    found = EndedTrace.of(parts)
    for path in parts:
        found.follow(path, _judged(found.judge, path, progress))
    found.judge.end()
    return found


def verify_file(path: Path, progress: Progress | None = None) -> FileReport:
    """Judge one trace alone, as far as it can be read.

    Args:
        path: The trace.
        progress: Told after each frame how many records it had.
    """
    return ended([path], progress).reports[0]


def verify_paths(paths: Iterable[Path], progress: Progress | None = None) -> VerificationSummary:
    return summarize(judge_paths(paths, progress))


def judge_paths(paths: Iterable[Path], progress: Progress | None = None) -> list[EndedTrace]:
    return [ended(parts, progress) for parts in traces_of(paths)]


def summarize(traces: list[EndedTrace]) -> VerificationSummary:
    witnesses = [witness for trace in traces if (witness := trace.close()) is not None]
    told = [one for trace in traces for one in trace.told]
    finding = judge_across(told, witnesses)
    reports = [report for trace in traces for report in trace.reports]
    begins = [(one.path, one.begun) for one in reports if one.begun is not None]
    summary = VerificationSummary(reports, finding.untold, [*absent(by_kind(told), witnesses), *doubled(begins)])
    for _, some in groupby(finding.suspects, key=lambda one: one.path):
        summary.add(violation(suspect) for suspect in islice(some, MAX_VIOLATIONS))
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
    path = Path(suspect.path)
    record, time = _place(path, suspect)
    found: dict[str, Any] = {"kind": suspect.kind, "life": f"{suspect.life:#x}", "peer": suspect.peer}
    found |= {"number": suspect.number} | ({"missing": suspect.missing} if suspect.missing else {})
    return TraceViolation(path, record, suspect.rule, f"record {record}: {sentence(suspect)}", None, found, time)


def sentence(suspect: Suspect) -> str:
    kind = _ARRIVED.get(suspect.kind, suspect.kind)
    senders = f" ({', '.join(suspect.senders)})" if suspect.senders else ""
    return TEXTS[suspect.rule].format(
        number=suspect.number, life=suspect.life, peer=suspect.peer, kind=kind, senders=senders
    )


def _place(path: Path, suspect: Suspect) -> tuple[int, int | None]:
    """Return the record and its time, or the suspect's own if the file changed meanwhile."""
    search, judge = _Search(wanted=suspect), None
    with suppress(TraceError):
        for portion in FrameReader.at(path, suspect.offset).read():  # Its file may be growing.
            if portion.offset > suspect.offset or search.found:
                break
            if judge is None:
                judge = FrameJudge.of(path, portion, book=search)
                judge.begin()
            judge.judge(portion)
    return search.found or (suspect.record, None)
