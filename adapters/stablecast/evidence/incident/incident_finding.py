"""A finding of an incident, and times for people."""

from datetime import UTC, datetime
from typing import Any

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.evidence.incident.actors import Proof
from stablecast.evidence.incident.logs import LogLine


@attrs.frozen
class IncidentFinding:
    """A finding: a sentence with its cause, further sentences, and the records and lines that prove them.

    `weight` orders the findings: what was lost first, then what waited, the longest first.
    """

    kind: str
    since: int
    until: int
    weight: float
    text: str
    more: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    lines: tuple[LogLine, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the finding for programs; times are ns of the epoch."""
        return {
            "kind": self.kind,
            "since": self.since,
            "until": self.until,
            "text": self.text,
            "more": [*self.more],
            "proof": [{"file": str(one.path), "record": one.record, "time": one.time} for one in self.proofs],
            "log": [one.text for one in self.lines],
        }


def clock(time: int) -> str:
    """Return a wall time with milliseconds, UTC."""
    return f"{datetime.fromtimestamp(time // SECOND, UTC):%H:%M:%S}.{time % SECOND // MILLISECOND:03}"
