"""Verdicts on frames, from traffic of others to malformed."""

from enum import Enum


class FrameVerdict(Enum):
    """The degree to which a frame could be read.

    PART is provisional: the frame holds a piece, and a later packet settles it. The others are final. A frame of
    several messages has the gravest of their verdicts, which is the last one in this list.
    """

    OTHER = "other"
    PART = "part"
    DECODED = "decoded"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    INCOMPLETE = "incomplete"
    DAMAGED = "damaged"
    MALFORMED = "malformed"


_GRAVITY = {verdict: weight for weight, verdict in enumerate(FrameVerdict)}


def gravest(verdicts: "list[FrameVerdict]") -> FrameVerdict:
    """Return the gravest of these verdicts; DECODED if there is none."""
    return max(verdicts, key=_GRAVITY.__getitem__, default=FrameVerdict.DECODED)
