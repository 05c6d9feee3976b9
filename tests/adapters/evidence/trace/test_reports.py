"""Reports and summaries: when something is clean, and how it looks to machines."""

import json
import sys
from pathlib import Path

import attrs
import pytest
from pyarrow import parquet  # type: ignore[import-untyped]

from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.reports import (
    MAX_VIOLATIONS,
    NOT_JUDGED,
    TABLE,
    FileReport,
    TraceViolation,
    VerificationSummary,
    rows_of,
    write_table,
)

PATH = Path("a.sct")
VIOLATION = TraceViolation(PATH, 7, "S1", "number 3 is reported stable too soon", None, {"_": "Notify"})


def test_clean_means_read_to_the_end_without_violations() -> None:
    assert FileReport(PATH).clean
    assert not FileReport(PATH, violations=[VIOLATION]).clean
    assert not FileReport(PATH, error="a.sct is truncated").clean
    assert VerificationSummary().clean
    assert VerificationSummary([FileReport(PATH)]).clean
    assert not VerificationSummary([FileReport(PATH), FileReport(PATH, violations=[VIOLATION])]).clean


def test_a_summary_is_plain_json() -> None:
    whole = FileReport(PATH, "source", "orders", frames=2, records=10, gaps=1, closed=True, violations=[VIOLATION])
    broken = FileReport(Path("b.sct"), records=5, error="b.sct is truncated at byte 7", truncated=True)
    value = VerificationSummary([whole, broken], ["S1 cannot be told"]).as_json()
    assert json.loads(json.dumps(value)) == value
    assert value == {
        "records": 15,
        "violations": [
            {
                "file": "a.sct",
                "record": 7,
                "rule": "S1",
                "text": "number 3 is reported stable too soon",
                "expected": None,
                "found": {"_": "Notify"},
            }
        ],
        "files": [
            {
                "file": "a.sct",
                "role": "source",
                "endpoint": "orders",
                "frames": 2,
                "records": 10,
                "gaps": 1,
                "missing": 0,
                "closed": True,
                "violations": 1,
                "error": None,
                "pauses": [],
            },
            {
                "file": "b.sct",
                "role": "",
                "endpoint": "",
                "frames": 0,
                "records": 5,
                "gaps": 0,
                "missing": 0,
                "closed": False,
                "violations": 0,
                "error": "b.sct is truncated at byte 7",
                "pauses": [],
            },
        ],
        "truncated": ["b.sct"],
        "errors": ["b.sct is truncated at byte 7"],
        "untold": ["S1 cannot be told"],
        "noted": [],
        "not_judged": NOT_JUDGED,
    }


def test_added_violations_are_listed_once_for_each_record_in_order_and_bounded() -> None:
    summary = VerificationSummary([FileReport(PATH, violations=[VIOLATION]), FileReport(Path("b.sct"))])
    earlier = TraceViolation(PATH, 3, "P1", "number 1 counts as acknowledged")
    summary.add([VIOLATION, earlier])
    assert summary.violations == [earlier, VIOLATION]
    summary.add(TraceViolation(PATH, record, "D1", "again") for record in range(2 * MAX_VIOLATIONS))
    assert len(summary.violations) == MAX_VIOLATIONS


def test_a_violation_between_traces_names_all_that_is_missing() -> None:
    """Two facts that lack the same number are one violation, and the later one may lack more."""

    def found(*missing: tuple[int, int]) -> TraceViolation:
        return TraceViolation(PATH, 8, "P6", "number 2 counts as acknowledged", found={"missing": missing})

    summary = VerificationSummary([FileReport(PATH, violations=[VIOLATION])])
    lacks = attrs.evolve(VIOLATION, found={"missing": ((1, 1),)})
    summary.add([found((2, 5)), found((2, 3), (5, 11), (14, 14)), lacks])
    summary.add([attrs.evolve(VIOLATION, record=8, rule="P6", found={"kind": "acked"})])
    assert summary.violations == [VIOLATION, found((2, 11), (14, 14))]


def test_the_violations_are_a_table(tmp_path: Path) -> None:
    summary = VerificationSummary([FileReport(PATH, "source", "orders", violations=[VIOLATION])])
    write_table(summary, tmp_path / "new")
    table = parquet.read_table(tmp_path / "new" / "violations.parquet")
    assert table.column_names == list(TABLE)
    assert table.to_pylist() == rows_of(summary)
    assert table.to_pylist()[0]["found"] == '{"_": "Notify"}'


def test_a_table_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TraceError, match=r"pip install 'stablecast\[spark\]'"):
        write_table(VerificationSummary(), tmp_path)
