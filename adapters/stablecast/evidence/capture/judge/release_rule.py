"""C1: messages that a source does not keep any more should be stable.

A release looks early if acknowledgements are not in the capture, or not in it yet. So it is judged twice: a second
later, when frames captured in another order have arrived, and at the end, when missing packets are known.
"""

import attrs

from stablecast.core.protocol.messages import Address
from stablecast.evidence.capture.judge.findings import CaptureFindings, RuleStanding
from stablecast.evidence.capture.judge.lives import RETENTION_BYTES, CapturedLife
from stablecast.evidence.capture.statements import At

MAX_WAITING = 1 << 12
"""Releases that wait for the end; later ones are not judged."""


@attrs.frozen
class CopyRelease:
    """A statement of `whose` that numbers from `first` to below `stop` are not kept any more."""

    whose: Address
    at: At
    life: CapturedLife
    first: int
    stop: int
    payload: int

    @property
    def text(self) -> str:
        """Return the release as a phrase."""
        return f"numbers up to {self.stop - 1} are not kept any more"


@attrs.define
class Releases:
    """Releases that were not stable at first: `late` may be soon, `early` were not a second later."""

    findings: CaptureFindings
    late: list[CopyRelease] = attrs.field(factory=list)
    early: list[CopyRelease] = attrs.field(factory=list)

    def judge_release(self, release: CopyRelease) -> None:
        """Judge a release, or keep it for later."""
        if release.life.stable(release.first, release.stop) is RuleStanding.FINE:
            self.findings.fine("C1", release.whose)
        elif len(self.late) + len(self.early) < MAX_WAITING:
            self.late.append(release)

    def settle(self, before_ns: int) -> None:
        """Judge again the releases before this time: all their acknowledgements have arrived."""
        while self.late and self.late[0].at.time_ns < before_ns:
            release = self.late.pop(0)
            if release.life.stable(release.first, release.stop) is RuleStanding.BROKEN:
                self.early.append(release)
            else:
                self._doubt(release)

    def close(self, now_ns: int) -> None:
        """Judge the rest at the end of the capture."""
        self.settle(now_ns + 1)
        for release in self.early:
            life = release.life
            if life.doubted or release.payload > RETENTION_BYTES or not life.spoken_since(release.at.time_ns):
                self._doubt(release)
            else:
                text = f"{release.text}, and too few stores have acknowledged them"
                at = release.at.frame, release.at.time_ns
                self.findings.note("C1", RuleStanding.BROKEN, release.whose, at, text)

    def _doubt(self, release: CopyRelease) -> None:
        text = f"{release.text}, and not all stores have acknowledged them"
        at = release.at.frame, release.at.time_ns
        self.findings.note("C1", RuleStanding.CANNOT_TELL, release.whose, at, text)
