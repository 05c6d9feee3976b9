"""What verification says: violations, a report for each file, a summary of all."""

from pathlib import Path
from typing import Any

import attrs

from stablecast.trace.converter import Json


@attrs.frozen
class Violation:
    """One broken rule.

    Attributes:
        path: The trace.
        record: Number of the first record that breaks the rule.
        rule: Name of the rule (`stablecast.trace.verify`, `stablecast.trace.rules`).
        text: One sentence.
        expected: What should stand there, as JSON, where that can be said.
        found: What stands there, as JSON.
    """

    path: Path
    record: int
    rule: str
    text: str
    expected: Any = None
    found: Any = None

    def as_json(self) -> Json:
        """Returns it as a JSON object."""
        return {
            "file": str(self.path),
            "record": self.record,
            "rule": self.rule,
            "text": self.text,
            "expected": self.expected,
            "found": self.found,
        }


@attrs.define
class FileReport:
    """What one trace holds, as far as it could be read.

    Attributes:
        path: The trace.
        role: source, receiver or store; empty if no frame could be read.
        endpoint: The endpoint's name.
        frames: Frames read.
        records: Records read.
        gaps: Records that the recorder dropped because the disk was too slow.
        closed: Whether the endpoint ended its trace; a killed process does not.
        violations: Broken rules, in the order of the records; at most `verify.MAX_VIOLATIONS`.
        error: Why the file could not be read to its end, one sentence, or None.
        truncated: Whether that is because its end is missing.
    """

    path: Path
    role: str = ""
    endpoint: str = ""
    frames: int = 0
    records: int = 0
    gaps: int = 0
    closed: bool = False
    violations: list[Violation] = attrs.field(factory=list)
    error: str | None = None
    truncated: bool = False

    @property
    def clean(self) -> bool:
        """Whether the whole trace was read and nothing is wrong with it."""
        return self.error is None and not self.violations

    def as_json(self) -> Json:
        """Returns it as a JSON object; violations are only counted here, the summary lists them."""
        return {
            "file": str(self.path),
            "role": self.role,
            "endpoint": self.endpoint,
            "frames": self.frames,
            "records": self.records,
            "gaps": self.gaps,
            "closed": self.closed,
            "violations": len(self.violations),
            "error": self.error,
        }


@attrs.define
class Summary:
    """The reports of all files."""

    files: list[FileReport] = attrs.field(factory=list)

    @property
    def clean(self) -> bool:
        """Whether there is nothing to complain about."""
        return all(report.clean for report in self.files)

    @property
    def records(self) -> int:
        """Records read."""
        return sum(report.records for report in self.files)

    @property
    def violations(self) -> list[Violation]:
        """All violations, file by file."""
        return [violation for report in self.files for violation in report.violations]

    def as_json(self) -> Json:
        """Returns it as a JSON object."""
        return {
            "records": self.records,
            "violations": [violation.as_json() for violation in self.violations],
            "files": [report.as_json() for report in self.files],
            "truncated": [str(report.path) for report in self.files if report.truncated],
            "errors": [report.error for report in self.files if report.error is not None],
        }
