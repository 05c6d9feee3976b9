"""Results of a verification: violations, a report for each file, a summary of all."""

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.evidence.rules.catalogue import TABLES
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.cross_ground import Witness
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.facts import Fact, StabilityPause
from stablecast.evidence.trace.frame_link import FrameLink
from stablecast.text import plural

MAX_VIOLATIONS: Final = 100
"""Violations of one file that are listed."""


@attrs.frozen
class TraceViolation:
    """A record that breaks a rule.

    Attributes:
        path: The trace.
        record: Number of the first record that breaks the rule.
        rule: Id of the rule (`stablecast.evidence.rules`).
        text: One sentence.
        expected: The expected value, as JSON, if there is one.
        found: The recorded value, as JSON.
        time: The machine's clock there, ns, if it is known.
    """

    path: Path
    record: int
    rule: str
    text: str
    expected: Any = None
    found: Any = None
    time: int | None = None

    def as_json(self) -> Json:
        names = ("record", "rule", "text", "expected", "found")
        return {"file": str(self.path), **{name: getattr(self, name) for name in names}}


@attrs.frozen
class FrameVerdict:
    """The verdict on one frame by itself, or on more of its records.

    Attributes:
        path, offset: The file, and where the frame begins.
        begins: Whether these are its first records.
        begin, behind: Its links to the frames before and behind it; None: it goes on.
        gap: Records before it that were dropped.
        closed: Whether the endpoint ended its trace here.
        count: The records.
        start: The clock at the first record, ns.
        witness: The frame as evidence; its trace is not named.
        facts, pauses: What these records state.
        found: The first violation of each rule in the frame so far.
    """

    path: Path
    offset: int
    begins: bool
    begin: FrameLink
    behind: FrameLink | None
    gap: int
    closed: bool
    count: int
    start: int
    witness: Witness
    facts: list[Fact]
    found: list[TraceViolation]
    pauses: list[StabilityPause]


@attrs.define
class FileReport:
    """The contents of one trace, as far as it could be read.

    Attributes:
        role: source, receiver or store; empty if no frame could be read.
        gaps: Records that the recorder dropped because the disk was too slow.
        missing: Records of older parts of the trace, which are gone: recorders delete them beyond a bound.
        closed: Whether the endpoint ended its trace; a killed process does not.
        violations: Broken rules, in the order of the records; at most `MAX_VIOLATIONS`.
        error: Why the file could not be read to its end, one sentence, or None.
        truncated: Whether that is because its end is missing.
        pauses: Of a source: times for which nothing became stable, more than a second each.
        begun: Where its first frame began.
        doubts: Rules of which a capture cannot tell whether this endpoint kept them.
    """

    path: Path
    role: str = ""
    endpoint: str = ""
    frames: int = 0
    records: int = 0
    gaps: int = 0
    missing: int = 0
    closed: bool = False
    violations: list[TraceViolation] = attrs.field(factory=list)
    error: str | None = None
    truncated: bool = False
    doubts: list[str] = attrs.field(factory=list)
    pauses: list[StabilityPause] = attrs.field(factory=list, eq=False)
    begun: FrameLink | None = attrs.field(default=None, eq=False)

    def take(self, one: FrameVerdict, found: Iterable[TraceViolation], pauses: Iterable[StabilityPause]) -> None:
        """Add a whole frame, with its violations in the order of the records."""
        self.role, self.endpoint = one.begin.role, one.begin.endpoint
        self.begun = self.begun or one.begin
        self.frames += 1
        self.records += one.count
        self.gaps += one.gap
        self.closed = one.closed
        self.violations += islice(found, MAX_VIOLATIONS - len(self.violations))
        self.pauses += pauses

    @property
    def clean(self) -> bool:
        """Return whether the whole trace was read and no rule is broken."""
        return self.error is None and not self.violations

    def as_json(self) -> Json:
        """Return it as a JSON object with the number of violations; the summary lists them."""
        names = ("role", "endpoint", "frames", "records", "gaps", "missing", "closed")
        counts: Json = {"violations": len(self.violations), "error": self.error}
        counts["pauses"] = [attrs.asdict(one) for one in self.pauses]
        return {"file": str(self.path), **{name: getattr(self, name) for name in names}, **counts}


NOT_JUDGED: Final[Mapping[str, str]] = TABLES["not_judged"]
"""Parts of rules that no trace shows; the other parts are judged, or reported as undecidable."""


def _united(one: TraceViolation, other: TraceViolation) -> TraceViolation:
    """Return the first violation, with the missing numbers of both if both are found between traces."""
    lists = [found.get("missing") for found in (one.found, other.found) if isinstance(found, dict)]
    if len(lists) < 2 or None in lists:
        return one
    missing = RangeSet()
    missing.update((first, last + 1) for ranges in lists for first, last in ranges or ())
    return attrs.evolve(one, found=one.found | {"missing": tuple((first, stop - 1) for first, stop in missing)})


@attrs.define
class VerificationSummary:
    """The reports of all files.

    Attributes:
        files: The reports.
        untold: A sentence for each question that missing traces leave open.
        noted: A sentence for each trace that is not there, or there twice.
    """

    files: list[FileReport] = attrs.field(factory=list)
    untold: list[str] = attrs.field(factory=list)
    noted: list[str] = attrs.field(factory=list)

    def add(self, violations: Iterable[TraceViolation]) -> None:
        """Add violations found between traces; one that names the rule and record of another adds what is missing."""
        by_path = {report.path: report for report in self.files}
        for one in violations:
            listed = by_path[one.path].violations
            same = (at for at, other in enumerate(listed) if (one.rule, one.record) == (other.rule, other.record))
            at = next(same, None)
            if at is not None:
                listed[at] = _united(listed[at], one)
            elif len(listed) < MAX_VIOLATIONS:
                listed.append(one)
        for report in self.files:
            report.violations.sort(key=lambda violation: violation.record)

    @property
    def clean(self) -> bool:
        """Return whether every file was read and no rule is broken."""
        return all(report.clean for report in self.files)

    def counts(self) -> str:
        """Return the numbers of records, files and violations for people."""
        where = f"{plural(self.records, 'record')} in {plural(len(self.files), 'file')}"
        return f"{where}, {plural(len(self.violations), 'violation')}"

    @property
    def records(self) -> int:
        return sum(report.records for report in self.files)

    @property
    def violations(self) -> list[TraceViolation]:
        return [violation for report in self.files for violation in report.violations]

    def as_json(self) -> Json:
        return {
            "records": self.records,
            "violations": [violation.as_json() for violation in self.violations],
            "files": [report.as_json() for report in self.files],
            "truncated": [str(report.path) for report in self.files if report.truncated],
            "errors": [report.error for report in self.files if report.error is not None],
            "untold": self.untold,
            "noted": self.noted,
            "not_judged": NOT_JUDGED,
        }


TABLE: Final = {
    "path": "string",
    "role": "string",
    "endpoint": "string",
    "record": "int64",
    "time": "int64",
    "rule": "string",
    "text": "string",
    "expected": "string",
    "found": "string",
}
"""The columns of the table of violations; expected and found values are JSON, times are ns."""


def rows_of(summary: VerificationSummary) -> list[dict[str, Any]]:
    return [
        {**row_of(one), "role": report.role, "endpoint": report.endpoint}
        for report in summary.files
        for one in report.violations
    ]


def row_of(one: TraceViolation) -> dict[str, Any]:
    """Return the fields of a violation; paths are strings, expected and found values are JSON."""
    values = {"expected": one.expected, "found": one.found}
    texts = {name: None if value is None else json.dumps(value) for name, value in values.items()}
    return {**attrs.asdict(one, recurse=False), **texts, "path": str(one.path)}


def table_of(summary: VerificationSummary) -> Any:
    """Return the Arrow table of violations. Raise ModuleNotFoundError if pyarrow is not installed."""
    import pyarrow as pa  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in TABLE.items()])
    return pa.Table.from_pylist(rows_of(summary), schema=schema)


def write_table(summary: VerificationSummary, directory: Path) -> None:
    """Write the table of violations as `violations.parquet` into a directory, which is made if it is missing.

    Raises:
        TraceError: If the Spark extra, which knows the format, is not installed.
        OSError: If it cannot be written.
    """
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise TraceError("a Parquet table needs the Spark extra: pip install 'stablecast[spark]'") from error
    directory.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table_of(summary), directory / "violations.parquet")
