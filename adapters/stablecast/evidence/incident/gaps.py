"""The messages that waited: for stability at their source, and for delivery at each receiver."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import attrs

from stablecast.evidence.incident.actors import Actor, EndpointLives, NumberedAct, Proof, reached


@attrs.define
class Gap:
    """A span of wall time (ns of the epoch) in which messages waited.

    Attributes:
        source: The life that sent them.
        reader: The receiver that waited; None: stability was awaited.
        first: First number that waited.
        last: Last number that waited.
        longest: The longest wait, ns.
        ended: Whether the wait ended. If not, `until` is the last that is known.
        still: The longest time within the span without any progress, ns.
        proofs: The record that sent the first message, and the one that ended its wait.
    """

    source: Actor
    reader: EndpointLives | None
    since: int
    until: int
    first: int
    last: int
    longest: int
    ended: bool
    still: int = 0
    proofs: list[Proof] = attrs.field(factory=list)

    @property
    def span(self) -> int:
        """Return the time from the first wait to the end of the last one, ns."""
        return self.until - self.since


@attrs.frozen
class _Wait:
    act: NumberedAct
    since: int
    until: int
    ended: Proof | None


def unstable(source: Actor, threshold: int) -> list[Gap]:
    """Return the spans in which messages of a source waited longer than `threshold` ns for stability."""
    if not source.stores:
        return []

    def wait(act: NumberedAct) -> Iterator[_Wait]:
        first = reached(source.stable, act.first)
        until = source.ended if first is None else first.time
        yield _Wait(act, source.wall(act.time), source.wall(until), None if first is None else source.proof(first))

    progress = [source.wall(one.time) for one in source.stable.rows]
    return _joined(source, None, wait, progress, threshold)


def undelivered(source: Actor, reader: EndpointLives, threshold: int) -> list[Gap]:
    """Return the spans in which messages of a source waited longer than `threshold` ns for a receiver."""
    lives = [one for one in reader.lives if one.life == source.life]
    if not lives:
        return []
    began = min(one.wall(one.began) for one in lives)
    over = max(one.wall(one.ended) for one in lives)
    # A receiver that came later begins where the source, its stores and its options let it begin.
    firsts = sorted(one.delivered.rows[0].first for one in lives if one.delivered.rows)
    start = firsts[0] if firsts else None

    def wait(act: NumberedAct) -> Iterator[_Wait]:
        sent = source.wall(act.time)
        if sent < began or start is None or act.stop <= start:
            return
        got = [(one, found) for one in lives if (found := reached(one.delivered, act.first)) is not None]
        if got:
            owner, first = min(got, key=lambda pair: pair[0].wall(pair[1].time))
            yield _Wait(act, sent, owner.wall(first.time), owner.proof(first))
        elif not any(act.first < first for first in firsts[1:]):
            # A later life of the receiver began above: the life before had the number, in records that a kill lost.
            yield _Wait(act, sent, over, None)

    progress = sorted(one.wall(act.time) for one in lives for act in one.delivered.rows)
    return _joined(source, reader, wait, progress, threshold)


def _joined(
    source: Actor,
    reader: EndpointLives | None,
    wait: Callable[[NumberedAct], Iterator[_Wait]],
    progress: list[int],
    threshold: int,
) -> list[Gap]:
    gaps: list[Gap] = []
    for one in (found for act in source.sent.rows for found in wait(act)):
        took = one.until - one.since
        if took <= threshold:
            continue
        proofs = [source.proof(one.act), *([one.ended] if one.ended else [])]
        if gaps and one.since <= gaps[-1].until:
            gap = gaps[-1]
            gap.last = one.act.stop - 1
            gap.longest, gap.until = max(gap.longest, took), max(gap.until, one.until)
            gap.ended = gap.ended and one.ended is not None
        else:
            known = one.ended is not None
            gaps.append(Gap(source, reader, one.since, one.until, one.act.first, one.act.stop - 1, took, known))
            gaps[-1].proofs = proofs
    for gap in gaps:
        instants = [gap.since, *(at for at in progress if gap.since < at < gap.until), gap.until]
        gap.still = max(after - before for before, after in pairwise(instants))
    return gaps
