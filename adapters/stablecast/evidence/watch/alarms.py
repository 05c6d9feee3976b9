"""The sentences of a watch: broken rules, damaged files, advice, and what could not be judged."""

from collections import OrderedDict
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import attrs

MAX_NAMED: Final = 100
"""Sentences about one file and rule that are printed; further ones are counted."""

MAX_KEYS: Final = 1 << 16
"""Files and rules whose sentences are counted, at most; the one that was silent for longest is forgotten."""


class AlarmKind(StrEnum):
    """The weight of a sentence; only notes are no alarm."""

    VIOLATION = "violation"
    DAMAGE = "damage"
    ADVICE = "advice"
    NOTE = "note"


@attrs.frozen
class WatchAlarm:
    """A sentence.

    Attributes:
        kind: Its weight.
        rule: The broken rule, or the code of the advice; empty if there is none.
        file: The trace or the capture.
        whose: Role and name of the endpoint, or the session.
        place: The record or the frame, 0 if there is none.
        text: The sentence.
        time_ns: The clock of the endpoint, or the time of the frame (ns), if known.
        wall_ns: The wall clock of the endpoint's host there, in ns of the epoch, if known.
        remedy: The next step, if there is one.
    """

    kind: AlarmKind
    rule: str
    file: Path
    whose: str
    place: int
    text: str
    time_ns: int | None = None
    wall_ns: int | None = None
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        return {**attrs.asdict(self), "file": str(self.file), "kind": self.kind.value}


@attrs.define
class AlarmBound:
    """A bound on sentences: of each file and rule, `MAX_NAMED` are printed."""

    counts: "OrderedDict[tuple[str, str, str], int]" = attrs.field(factory=OrderedDict)

    def admit(self, alarm: WatchAlarm) -> bool:
        """Count a sentence; return whether it is printed."""
        key = alarm.kind.value, str(alarm.file), alarm.rule
        count = self.counts.pop(key, 0) + 1
        self.counts[key] = count
        if len(self.counts) > MAX_KEYS:
            self.counts.popitem(last=False)
        return count <= MAX_NAMED
