"""What is said of a frame."""

from enum import Enum


class FrameVerdict(Enum):
    """How far a frame could be read.

    PART is provisional: the frame holds a piece, and a later packet settles it. The others are final, and a frame of
    several messages has the gravest verdict of them, which is the last one of these.
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
    """The one that a frame of all these has; DECODED if there is none."""
    return max(verdicts, key=_GRAVITY.__getitem__, default=FrameVerdict.DECODED)
