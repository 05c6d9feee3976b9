"""The record of a suspect: the frame that it points to is read again."""

from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.trace.cross_rules import Suspect
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.facts import Book
from stablecast.evidence.trace.frame_judge import FrameJudge
from stablecast.evidence.trace.frames import frames_from
from stablecast.evidence.trace.reports import TraceViolation

TEXTS: Final = {
    "S1": "number {number} is reported stable, and too few stores hold it by their own traces",
    "S2": "number {number} is reported stable by life {life:#x} although it is stable for an earlier life",
    "S3": "number {number} of life {life:#x} is cut, although its source reports it stable",
    "P6": "number {number} counts as acknowledged by {peer}, whose trace has no such acknowledgement",
    "D1": "number {number} is delivered as one of life {life:#x}, which never sent it",
    "A3": "everything up to {number} counts as consumed by {peer}, whose trace has no such acknowledgement",
    "E4": "a second proxy stands in for the source with RegID {number}, and lasts",
}
"""The sentence of each rule across endpoints about a record."""


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
    text = TEXTS[suspect.rule].format(number=suspect.number, life=suspect.life, peer=suspect.peer)
    found = {"kind": suspect.kind, "life": f"{suspect.life:#x}", "peer": suspect.peer, "number": suspect.number}
    return TraceViolation(path, record, suspect.rule, f"record {record}: {text}", None, found, time)


def _place(path: Path, suspect: Suspect) -> tuple[int, int | None]:
    """Return the record and its time, or the suspect's own if the file changed meanwhile."""
    search = _Search(wanted=suspect)
    with suppress(TraceError, StopIteration):
        frame, offset = next(frames_from(path, suspect.offset))
        FrameJudge(path, frame, offset == 0 or frame.head.gap > 0, book=search).run(None)
    return search.found or (suspect.record, None)
