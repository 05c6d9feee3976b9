"""The causes of a gap: what each store, the source and the receiver did while messages waited."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.messages import Refusal, Role
from stablecast.evidence.incident.actors import Actor, EndpointLives, NumberedAct, NumberedActs, Proof, reached
from stablecast.evidence.incident.captured import CapturedActor
from stablecast.evidence.incident.gaps import Gap
from stablecast.transports.codec.domains import split_domain

SLOW_NS: Final = 250 * MILLISECOND
"""Time of a write to the disk that counts as slow, ns."""

SHARE: Final = 0.3
"""Share of a gap that a cause must cover."""

EDGE_NS: Final = 10 * MILLISECOND
"""Time near the ends of a span that does not count, because clocks of hosts are not exact, ns."""


class Because(IntEnum):
    """The kinds of causes for which a store did not acknowledge, or a receiver did not deliver, the first one first."""

    DOWN = 0
    NO_TRACE = 1
    REFUSED = 2
    SILENT = 3
    SLOW_DISK = 4
    CUT_TO = 5
    CUT_FROM = 6
    UNANSWERED = 7
    LATE = 8
    LOSS = 9


@attrs.frozen
class Cause:
    """The reason why an endpoint did not do its part, from `since` to `until` (ns of the epoch), with its records.

    Attributes:
        domain: The domain of the endpoint, as the source names it, if a router is between both; else 0.
        router: The host of that router, where captures show it.
    """

    because: Because
    who: str
    since: int
    until: int
    text: str = ""
    proofs: tuple[Proof, ...] = ()
    domain: int = 0
    router: str = ""


def of_store(store: EndpointLives | None, address: str, gap: Gap) -> Cause | None:
    """Return why a store did not make messages stable in a gap of its source; None if it did its part."""
    because = _of_store(store, address, gap)
    return (
        None if because is None else attrs.evolve(because, domain=split_domain(address)[0], router=_router(store, gap))
    )


def _router(one: EndpointLives | None, gap: Gap) -> str:
    """Return the host of the router between the source of a gap and another endpoint; empty if none is known."""
    lives = [] if one is None else one.lives
    found = [life.routers.get(gap.source.host, "") for life in lives if isinstance(life, CapturedActor)]
    return next(filter(None, found), "")


def _of_store(store: EndpointLives | None, address: str, gap: Gap) -> Cause | None:
    if store is None:
        return Cause(Because.NO_TRACE, f"store {address}", gap.since, gap.until)
    source = gap.source
    index = next((at for at, one in source.stores.items() if one == address), -1)
    down = _down(store, gap)
    if down is not None:
        return down
    refused = [one for one in source.notices if one.kind == "Refused" and one.fields.get("store_index") == index]
    refused = [one for one in refused if gap.since - gap.span <= source.wall(one.time) <= gap.until]
    if refused:
        first = refused[0]
        proof = Proof(first.path, first.record, source.wall(first.time))
        return Cause(Because.REFUSED, store.name, proof.time, gap.until, _refusal(first.fields), (proof,))
    if any(isinstance(one, CapturedActor) for one in store.lives):
        return unanswered(store, gap) or _cut(store, gap, index)
    silent = _silent(store, gap)
    if silent is not None:
        return silent
    return _slow(store, gap) or _cut(store, gap, index)


def _refusal(fields: dict[str, object]) -> str:
    reason = fields.get("reason")
    known = isinstance(reason, int) and reason in {int(one) for one in Refusal}
    return Refusal(reason).text if known else str(reason)  # type: ignore[arg-type]  # `known` is about an int


def _covers(since: int, until: int, gap: Gap) -> bool:
    return min(until, gap.until) - max(since, gap.since) >= SHARE * gap.span


def _down(one: EndpointLives, gap: Gap) -> Cause | None:
    """Return that an endpoint was down, if it was for a large part of a gap."""
    for since, until, before in one.downs():
        if _covers(since, until, gap):
            after = one.lives[one.lives.index(before) + 1]
            return _ended(one, before, until, (Proof(after.path, after.opening, until),))
    last = one.lives[-1]
    ended = last.wall(last.ended)
    if not last.closed and _covers(ended, gap.until, gap):
        return _ended(one, last, gap.until, ())
    if last.closed and ended < gap.since:
        return _ended(one, last, gap.until, ())
    first = one.lives[0]
    began = first.wall(first.began)
    if _covers(gap.since, began, gap):
        return Cause(
            Because.DOWN, one.name, gap.since, began, "not started yet", (Proof(first.path, first.opening, began),)
        )
    return None


def _ended(one: EndpointLives, life: Actor, until: int, more: tuple[Proof, ...]) -> Cause:
    since = life.wall(life.ended)
    return Cause(Because.DOWN, one.name, since, until, life.end, (Proof(life.path, life.records - 1, since), *more))


def _silent(one: EndpointLives, gap: Gap) -> Cause | None:
    for life in one.lives:
        for began, ended, record in life.pauses:
            since, until = life.wall(began), life.wall(ended)
            # An endpoint with nothing to do is silent, too. The input of one that hangs comes at once afterwards.
            burst = [at for acts in life.arrived.values() for at in acts.within(ended, ended + MILLISECOND)]
            if _covers(since, until, gap) and (burst or one.role is Role.STORE):
                return Cause(Because.SILENT, one.name, since, until, "", (Proof(life.path, record, until),))
    return None


def _slow(store: EndpointLives, gap: Gap) -> Cause | None:
    slow = [
        (ended - began, life, began, ended, record)
        for life in store.lives
        for began, ended, record in life.syncs
        if ended - began >= SLOW_NS and life.wall(began) <= gap.until and life.wall(ended) >= gap.since
    ]
    if not slow:
        return None
    took, life, _, ended, record = max(slow, key=lambda one: one[0])
    text = f"{len(slow)} writes took up to {took / 1e9:.2f} s"
    since = min(one.wall(at) for _, one, at, _, _ in slow)
    until = max(one.wall(at) for _, one, _, at, _ in slow)
    return Cause(Because.SLOW_DISK, store.name, since, until, text, (Proof(life.path, record, life.wall(ended)),))


def unanswered(store: EndpointLives, gap: Gap) -> Cause | None:
    """Return that a store did not answer for a large part of a gap, or answered late, as a capture shows it."""
    for life in store.lives:
        if not isinstance(life, CapturedActor):
            continue
        for span in life.quiet:
            since, until = life.wall(span.since), life.wall(span.until)
            if _covers(since, until, gap):
                proofs = (Proof(life.path, span.frame, since), Proof(life.path, span.last_frame, until))
                quiet = _quiet(store, life, gap, since, until, proofs)
                if quiet is not None:
                    return quiet
    late = _slow(store, gap)
    return None if late is None else attrs.evolve(late, because=Because.LATE)


def _quiet(
    store: EndpointLives, life: CapturedActor, gap: Gap, since: int, until: int, proofs: tuple[Proof, ...]
) -> Cause | None:
    """Return why a store was quiet: nothing came, its process sent nothing, or nobody there answered.

    None: there was nothing to answer. Messages near the end may be those that ended the pause.
    """
    source, stop = gap.source, until - int(SHARE * (until - since))
    come = life.arrived[source.life] if source.life in life.arrived else NumberedActs()
    came = come.within(since + EDGE_NS - life.shift, stop - life.shift)
    if not came and not source.sent.within(since + EDGE_NS - source.shift, stop - source.shift):
        return None
    if life.own and not came:
        return Cause(Because.CUT_TO, store.name, since, until, "", proofs)
    paused = any(_covers(life.wall(span.since), life.wall(span.until), gap) for span in life.system.pauses)
    text = "did not answer" if paused and not life.own else "got messages and answered nothing"
    return Cause(Because.UNANSWERED, store.name, since, until, text, proofs)


Passed = Sequence[tuple[Actor, NumberedActs]]
"""The acts of the lives of one endpoint."""


def _cut(store: EndpointLives, gap: Gap, index: int) -> Cause | None:
    """Return the direction in which nothing passed between a source and a store, if there is one."""
    source = gap.source
    arrived = [(life, life.arrived[source.life]) for life in store.lives if source.life in life.arrived]
    said = [(life, life.acknowledged[source.life]) for life in store.lives if source.life in life.acknowledged]
    return _late(Because.CUT_TO, store.name, gap, [(source, source.sent)], arrived) or _late(
        Because.CUT_FROM, store.name, gap, said, [(source, source.acked[index])] if index in source.acked else []
    )


def _late(because: Because, who: str, gap: Gap, went: Passed, came: Passed) -> Cause | None:
    """Return that acts of one endpoint in a gap came to the other much later, or never."""
    late: list[tuple[int, Proof]] = []
    ends: list[tuple[int, Proof | None]] = []
    for owner, acts in went:
        for act in acts.within(gap.since - owner.shift, gap.until - owner.shift):
            at = owner.wall(act.time)
            found = [(one.wall(hit.time), one.proof(hit)) for one, some in came if (hit := reached(some, act.first))]
            arrival = min(found, key=lambda pair: pair[0]) if found else (gap.until, None)
            if arrival[0] - at >= SHARE * gap.span:
                late.append((at, owner.proof(act)))
                ends.append(arrival)
    if not late:
        return None
    until, proof = min(ends, key=lambda pair: pair[0])
    return Cause(because, who, late[0][0], until, "", (late[0][1], *([proof] if proof else [])))


def of_reader(reader: EndpointLives, gap: Gap) -> Cause | None:
    """Return why a receiver did not deliver in a gap, by what it did itself; None if its trace does not show it."""
    because = _of_reader(reader, gap)
    return None if because is None else attrs.evolve(because, router=_router(reader, gap))


def _of_reader(reader: EndpointLives, gap: Gap) -> Cause | None:
    down = _down(reader, gap)
    if down is not None:
        return down
    source = gap.source
    lives = [one for one in reader.lives if one.life == source.life]
    arrived = [(one, one.arrived[source.life]) for one in lives if source.life in one.arrived]
    late = _late(Because.CUT_TO, reader.name, gap, [(source, source.sent)], arrived)
    loss = _loss(lives, gap)
    # If later messages arrived long before the end, the path was open, and some were lost on it.
    some = any(one.within(gap.since - life.shift, gap.until - gap.span // 4 - life.shift) for life, one in arrived)
    return loss if loss is not None and (some or late is None) else late


def _loss(lives: list[Actor], gap: Gap) -> Cause | None:
    missing = list(_missing(lives, gap))
    if not missing:
        return None
    first = missing[0]
    text = f"{sum(act.stop - act.first for act in missing)} messages arrived late, after later ones"
    owner = next(one for one in lives if any(act is first for acts in one.arrived.values() for act in acts.rows))
    return Cause(Because.LOSS, lives[0].name, gap.since, gap.until, text, (owner.proof(first),))


def _missing(lives: list[Actor], gap: Gap) -> Iterator[NumberedAct]:
    """Yield the acts by which numbers arrived after higher ones had arrived."""
    for life in lives:
        for acts in life.arrived.values():
            highest = -1
            for act in acts.rows:
                if act.first < highest and gap.first <= act.first <= gap.last:
                    yield act
                highest = max(highest, act.stop)
