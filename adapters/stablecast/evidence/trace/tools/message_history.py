"""`why`: the history of one message, from the source's send to its consumption, by all traces together.

The steps are the facts of `evidence.trace.facts`, each at its own record. Clocks of different hosts do not agree, so
the order is that of cause and effect; the times are those of each endpoint's own clock.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.trace.converter import decode_effects, decode_input, restore
from stablecast.evidence.trace.facts import Book, StoreFacts, gatherer
from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frame_judge import RecordWatch, unjudged
from stablecast.evidence.trace.frames import TraceFrame, unread_frames
from stablecast.evidence.trace.tools.mentions import Mentions

STEPS: Final = {
    "sent": "sent",
    "held": "kept by the store: synced, or settled in its memory",
    "said": "the store acknowledged it",
    "acked": "the acknowledgement of store {peer} came",
    "stable": "the rules of the groups are met: stable",
    "delivered": "handed to the application",
    "confirmed": "acknowledged as consumed to {peer}",
    "heard": "the acknowledgement of receiver {peer} arrived",
    "found": "found on the store's disk when it started",
    "cut": "cut as the tail of an older life, which was never reported stable",
}
"""The kinds of facts about a message, in the order of cause and effect."""


@attrs.frozen
class MessageStep:
    """An event in the history of a message; `time` is the endpoint's own clock, ns."""

    kind: str
    role: str
    endpoint: str
    record: int
    time: int
    life: Incarnation
    peer: str
    path: Path

    @property
    def text(self) -> str:
        return STEPS[self.kind].format(peer=self.peer)


@attrs.define
class _Noting(Book):
    """A book that keeps the facts about one number, each with its own record."""

    number: int = 0
    begun: bool = False
    steps: list[tuple[str, int, int, Incarnation, str]] = attrs.field(factory=list)
    seen: set[tuple[str, Incarnation, str]] = attrs.field(factory=set)

    def note(self, kind: str, life: Incarnation, first: int, last: int, peer: str = "") -> None:
        if kind == "held" and not self.begun:
            kind = "found"
        if kind not in STEPS or (kind, life, peer) in self.seen:
            return
        if first <= self.number <= last:
            self.seen.add((kind, life, peer))
            self.steps.append((kind, self.record, self.time, life, peer))


def why(paths: Iterable[Path], number: int) -> list[MessageStep]:
    """Return the history of the message with this number, for every life that sent one. Raise TraceError."""
    if number < 0:
        return []
    steps = [step for parts in traces_of(find(paths)) for step in _of_trace(parts, number)]
    order = list(STEPS)
    return sorted(steps, key=lambda step: (step.life, order.index(step.kind), step.time))


def _of_trace(parts: list[Path], number: int) -> Iterator[MessageStep]:
    """Yield the steps of one trace; decode only frames that may state something new."""
    mentions, seen = Mentions(number), set[tuple[str, Incarnation, str]]()
    begin, waits = None, False
    for path in parts:
        for frame, _ in unread_frames(path):
            before, begin = begin, frame.head.first + frame.foot.records
            follows = before == frame.head.first
            if follows and not waits and not mentions.ranges_in(frame) and not _consumed_anew(mentions, frame, seen):
                continue
            noting = _Noting(number=number, seen=seen, record=frame.head.first, time=frame.head.time)
            waits = _gather(frame, noting, fresh=before is None)
            role, endpoint = frame.owner
            for kind, record, time, life, peer in noting.steps:
                yield MessageStep(kind, role, endpoint, record, time, life, peer, path)


def _consumed_anew(mentions: Mentions, frame: TraceFrame, seen: Iterable[tuple[str, Incarnation, str]]) -> bool:
    """Return whether the frame has the first acknowledgement of a receiver."""
    tails = {(life, peer.rpartition("/")[2]) if kind == "heard" else (life, peer) for kind, life, peer in seen}
    return any(one not in tails for one in mentions.acks_in(frame))


def _gather(frame: TraceFrame, book: _Noting, *, fresh: bool) -> bool:
    """Gather the facts of a frame; return whether the message waits for the disk. Raise SchemaError."""
    role = frame.head.role
    facts = gatherer(restore(role, frame.head.snapshot), book, fresh=fresh)
    watch = RecordWatch([], facts, book, unjudged)
    book.begun = True
    for line in frame.records:
        effects = decode_effects(role, line["out"])
        watch.judge([(line["n"], line["t"], decode_input(role, line["in"]), effects)])
    waiting = facts.waiting if isinstance(facts, StoreFacts) else []
    return any(first <= book.number < stop for *_, first, stop in waiting)
