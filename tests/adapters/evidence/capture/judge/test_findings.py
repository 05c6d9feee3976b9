"""Verdicts are put together: the gravest counts, and floods are bounded."""

from stablecast.evidence.capture.judge.findings import MAX_FINDINGS, CaptureFindings, RuleStanding


def test_the_gravest_counts() -> None:
    assert CaptureFindings().gravest is RuleStanding.FINE
    findings = CaptureFindings()
    findings.fine("P1", "a")
    findings.cannot_tell("P1", "a", 1, "who knows")
    findings.fine("P1", "a")
    assert findings.asked["P1", "a"] == 3
    assert findings.standings["P1", "a"] is RuleStanding.CANNOT_TELL
    findings.broken("P1", "b", 2, "wrong")
    assert findings.counts() == {"broken": 1, "cannot tell": 1, "fine": 0}
    assert findings.gravest is RuleStanding.BROKEN
    assert findings.found[1].as_json() == {
        "rule": "P1",
        "standing": "broken",
        "whose": "b",
        "frame": 2,
        "text": "wrong",
        "time_ns": 0,
    }


def test_a_flood_is_counted_and_not_kept() -> None:
    findings = CaptureFindings()
    for frame in range(MAX_FINDINGS + 5):
        findings.broken("P1", "a", frame, "again")
    assert len(findings.found) == MAX_FINDINGS
    assert findings.asked["P1", "a"] == MAX_FINDINGS + 5


def test_many_doubts_do_not_hide_a_broken_rule() -> None:
    findings = CaptureFindings()
    for frame in range(MAX_FINDINGS + 5):
        findings.cannot_tell("P1", "a", frame, "who knows")
    findings.broken("P1", "a", 7, "wrong")
    assert [one.text for one in findings.found if one.standing is RuleStanding.BROKEN] == ["wrong"]
