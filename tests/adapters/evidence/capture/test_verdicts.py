"""A frame of several messages has the gravest of their verdicts."""

import pytest

from stablecast.evidence.capture.ip import FrameVerdict, gravest


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ([], FrameVerdict.DECODED),
        ([FrameVerdict.DECODED, FrameVerdict.UNKNOWN], FrameVerdict.UNKNOWN),
        ([FrameVerdict.MALFORMED, FrameVerdict.INCOMPLETE, FrameVerdict.DIFFERENT], FrameVerdict.MALFORMED),
    ],
)
def test_the_gravest(verdicts: list[FrameVerdict], verdict: FrameVerdict) -> None:
    assert gravest(verdicts) is verdict
