"""What is said in the end: one of three verdicts for each rule and each of those whom it is about.

A rule that was never asked anything says nothing. One broken packet outweighs everything, one that cannot be told
outweighs all that is fine.
"""

from enum import IntEnum
from typing import Any, Final

import attrs

from stablecast.evidence.capture.judge.timeline import Timeline

MAX_FINDINGS: Final = 100
"""Findings that are kept of one rule, one endpoint and one verdict: many doubts do not hide what is broken."""


class RuleStanding(IntEnum):
    """How a rule stands, the graver the higher."""

    FINE = 0
    CANNOT_TELL = 1
    BROKEN = 2

    @property
    def text(self) -> str:
        """As a person reads it."""
        return self.name.lower().replace("_", " ")


@attrs.frozen
class CaptureFinding:
    """Why a rule does not stand as fine: `frame` is the packet that shows it, 0 for the end of the capture.

    `time_ns` is when it was seen, nanoseconds since 1970.
    """

    rule: str
    standing: RuleStanding
    whose: str
    frame: int
    text: str
    time_ns: int = 0

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {**attrs.asdict(self), "standing": self.standing.text}


@attrs.define
class CaptureFindings:
    """All that was found. `asked` counts how often a rule could be applied to somebody.

    `timeline` is how far everybody was, `now_ns` the time of the packet at work. `ours` counts packets that could be
    read, `strange` those that are ours by their ports and could not; `cut` says where the file ends before its end.
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

    def fine(self, rule: str, whose: str, times: int = 1) -> None:
        """The rule was applied so often, and holds."""
        key = rule, whose
        self.asked[key] = self.asked.get(key, 0) + times
        self.standings.setdefault(key, RuleStanding.FINE)

    def broken(self, rule: str, whose: str, frame: int, text: str) -> None:
        """No possible state explains this packet."""
        self._note(CaptureFinding(rule, RuleStanding.BROKEN, whose, frame, text, self.now_ns))

    def cannot_tell(self, rule: str, whose: str, frame: int, text: str) -> None:
        """Some possible states explain it, others do not."""
        self._note(CaptureFinding(rule, RuleStanding.CANNOT_TELL, whose, frame, text, self.now_ns))

    def note(self, rule: str, standing: RuleStanding, whose: str, at: tuple[int, int], text: str) -> None:
        """What turns out later: `at` is the frame and the time of what it is about."""
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
        """Whatever breaks a rule may be explained by `why`."""
        broken = RuleStanding.BROKEN
        self.found = [
            attrs.evolve(one, standing=RuleStanding.CANNOT_TELL, text=f"{one.text}, {why}")
            if one.standing is broken
            else one
            for one in self.found
        ]
        self.standings = {key: min(standing, RuleStanding.CANNOT_TELL) for key, standing in self.standings.items()}

    def counts(self) -> dict[str, int]:
        """How many pairs of a rule and an endpoint have each verdict."""
        standings = [*self.standings.values()]
        return {standing.text: standings.count(standing) for standing in reversed(RuleStanding)}

    @property
    def gravest(self) -> RuleStanding:
        """Of all."""
        return max(self.standings.values(), default=RuleStanding.FINE)
