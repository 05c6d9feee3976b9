"""Findings: one of three verdicts for each rule and each endpoint that it judges.

A rule that was never applied has no verdict. One broken packet outweighs everything; one undecidable packet outweighs
all that are fine.
"""

from enum import IntEnum
from typing import Any, Final

import attrs

from stablecast.evidence.capture.doctor.findings import CaptureAdvice
from stablecast.evidence.capture.judge.timeline import Timeline

MAX_FINDINGS: Final = 100
"""Findings that are kept for one rule, endpoint and verdict, so that many doubts do not hide a broken rule."""


class RuleStanding(IntEnum):
    FINE = 0
    CANNOT_TELL = 1
    BROKEN = 2

    @property
    def text(self) -> str:
        return self.name.lower().replace("_", " ")


@attrs.frozen
class CaptureFinding:
    """The reason why a rule is not fine: `frame` is the packet that shows it, 0 for the end of the capture.

    `time_ns` is the time of the packet, nanoseconds since 1970.
    """

    rule: str
    standing: RuleStanding
    whose: str
    frame: int
    text: str
    time_ns: int = 0

    def as_json(self) -> dict[str, Any]:
        return {**attrs.asdict(self), "standing": self.standing.text}


@attrs.define
class CaptureFindings:
    """All findings.

    Attributes:
        now_ns: The time of the current packet.
        timeline: The progress of all endpoints.
        asked: Applications of a rule to an endpoint.
        ours: Packets that were decoded.
        strange: Packets that are ours by their ports and malformed.
        cut: States where a cut file ends.
        advice: The findings of the doctor.
    """

    now_ns: int = 0
    timeline: Timeline = attrs.field(factory=Timeline)
    found: list[CaptureFinding] = attrs.field(factory=list)
    asked: dict[tuple[str, str], int] = attrs.field(factory=dict)
    standings: dict[tuple[str, str], RuleStanding] = attrs.field(factory=dict)
    listed: dict[tuple[str, str, RuleStanding], int] = attrs.field(factory=dict)
    ours: int = 0
    strange: int = 0
    cut: str = ""
    advice: list[CaptureAdvice] = attrs.field(factory=list)

    def fine(self, rule: str, whose: str, times: int = 1) -> None:
        """Note that the rule was applied `times` times and holds."""
        key = rule, whose
        self.asked[key] = self.asked.get(key, 0) + times
        self.standings.setdefault(key, RuleStanding.FINE)

    def broken(self, rule: str, whose: str, frame: int, text: str) -> None:
        """Note a packet that no possible state explains."""
        self._note(CaptureFinding(rule, RuleStanding.BROKEN, whose, frame, text, self.now_ns))

    def cannot_tell(self, rule: str, whose: str, frame: int, text: str) -> None:
        """Note a packet that some possible states explain and others do not."""
        self._note(CaptureFinding(rule, RuleStanding.CANNOT_TELL, whose, frame, text, self.now_ns))

    def note(self, rule: str, standing: RuleStanding, whose: str, at: tuple[int, int], text: str) -> None:
        """Note a late finding: `at` is the frame and the time of its packet."""
        self._note(CaptureFinding(rule, standing, whose, at[0], text, at[1]))

    def _note(self, finding: CaptureFinding) -> None:
        key = finding.rule, finding.whose
        self.asked[key] = self.asked.get(key, 0) + 1
        self.standings[key] = max(self.standings.get(key, RuleStanding.FINE), finding.standing)
        kind = *key, finding.standing
        self.listed[kind] = self.listed.get(kind, 0) + 1
        if self.listed[kind] <= MAX_FINDINGS:
            self.found.append(finding)

    def doubt(self, why: str) -> None:
        """Make all broken rules undecidable, because `why` may explain them."""
        broken = RuleStanding.BROKEN
        self.found = [
            attrs.evolve(one, standing=RuleStanding.CANNOT_TELL, text=f"{one.text}, {why}")
            if one.standing is broken
            else one
            for one in self.found
        ]
        self.standings = {key: min(standing, RuleStanding.CANNOT_TELL) for key, standing in self.standings.items()}

    def counts(self) -> dict[str, int]:
        """Return the number of pairs of a rule and an endpoint with each verdict."""
        standings = [*self.standings.values()]
        return {standing.text: standings.count(standing) for standing in reversed(RuleStanding)}

    @property
    def gravest(self) -> RuleStanding:
        return max(self.standings.values(), default=RuleStanding.FINE)
