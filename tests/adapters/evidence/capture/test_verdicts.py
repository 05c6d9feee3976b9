"""A frame of several messages has the gravest of their verdicts."""

import pytest

from stablecast.evidence.capture.verdicts import Verdict, gravest


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ([], Verdict.DECODED),
        ([Verdict.DECODED, Verdict.UNKNOWN], Verdict.UNKNOWN),
        ([Verdict.MALFORMED, Verdict.INCOMPLETE, Verdict.DIFFERENT], Verdict.MALFORMED),
    ],
)
def test_the_gravest(verdicts: list[Verdict], verdict: Verdict) -> None:
    assert gravest(verdicts) is verdict
