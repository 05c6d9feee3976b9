"""Reports and summaries: when something is clean, and how it looks to machines."""

import json
from pathlib import Path

from stablecast.trace.reports import FileReport, Summary, Violation

PATH = Path("a.sct")
VIOLATION = Violation(PATH, 7, "S1", "number 3 is reported stable too soon", None, {"_": "Notify"})


def test_clean_means_read_to_the_end_without_violations() -> None:
    assert FileReport(PATH).clean
    assert not FileReport(PATH, violations=[VIOLATION]).clean
    assert not FileReport(PATH, error="a.sct is truncated").clean
    assert Summary().clean
    assert Summary([FileReport(PATH)]).clean
    assert not Summary([FileReport(PATH), FileReport(PATH, violations=[VIOLATION])]).clean


def test_a_summary_is_plain_json() -> None:
    whole = FileReport(PATH, "source", "orders", frames=2, records=10, gaps=1, closed=True, violations=[VIOLATION])
    broken = FileReport(Path("b.sct"), records=5, error="b.sct is truncated at byte 7", truncated=True)
    value = Summary([whole, broken]).as_json()
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
                "closed": True,
                "violations": 1,
                "error": None,
            },
            {
                "file": "b.sct",
                "role": "",
                "endpoint": "",
                "frames": 0,
                "records": 5,
                "gaps": 0,
                "closed": False,
                "violations": 0,
                "error": "b.sct is truncated at byte 7",
            },
        ],
        "truncated": ["b.sct"],
        "errors": ["b.sct is truncated at byte 7"],
    }
