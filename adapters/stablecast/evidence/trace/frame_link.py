"""The joints between the frames of a trace: what one ends with is what the next one begins with."""

from collections.abc import Iterator
from typing import Any

import attrs

from stablecast.evidence.trace.frames import Head

Broken = tuple[int, str, str, Any, Any]
"""Record, rule, sentence, expected and found value."""


@attrs.frozen
class FrameLink:
    """The joint between two frames: index, first record, snapshot, clock and owner of the next one."""

    frame: int
    first: int
    digest: str
    time: int
    role: str
    endpoint: str

    @classmethod
    def before(cls, head: Head) -> "FrameLink":
        return cls(head.frame, head.first, head.digest, head.time, head.role.name.lower(), head.endpoint)

    @classmethod
    def behind(cls, head: Head, count: int, digest: str, ended: int) -> "FrameLink":
        """Return the link that must follow a frame of so many records that ended in this state at this time (ns)."""
        return cls(head.frame + 1, head.first + count, digest, ended, head.role.name.lower(), head.endpoint)

    def broken_by(self, begin: "FrameLink", gap: int) -> Iterator[Broken]:
        first, expected = begin.first, self.first + gap
        if (begin.frame, first) != (self.frame, expected):
            text = f"expected frame {self.frame} with record {expected}, found frame {begin.frame} with record {first}"
            yield min(expected, first), "numbering", text, [self.frame, expected], [begin.frame, first]
        if (begin.role, begin.endpoint) != (self.role, self.endpoint):
            mine, theirs = f"{begin.role} {begin.endpoint}", f"{self.role} {self.endpoint}"
            text = f"record {first} belongs to {mine}, what precedes it to {theirs}"
            yield first, "chain", text, [self.role, self.endpoint], [begin.role, begin.endpoint]
        if not gap and begin.digest != self.digest:
            text = f"the snapshot before record {first} is not the state that the frame before ended with"
            yield first, "chain", text, self.digest, begin.digest
        if begin.time < self.time:
            yield first, "time", f"record {first} is earlier than what precedes it", self.time, begin.time


def broken_beginning(begin: FrameLink, gap: int) -> Iterator[Broken]:
    if begin.frame or begin.first != gap:
        text = f"the trace begins with frame {begin.frame}, record {begin.first}: what precedes it is missing"
        yield 0, "numbering", text, [0, gap], [begin.frame, begin.first]
