"""One wall clock for all hosts: the clocks of the hosts, corrected by the messages that they exchanged.

A message arrives after it was sent. If A sent a message to B, and B another one to A, then the difference of their
clocks lies between the two smallest differences of sending and arrival. The error is half of what lies between.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import attrs

from stablecast.core.machine.units import SECOND

FAR_NS: Final = SECOND // 2
"""Difference of two hosts' wall clocks that is reported, ns."""


@attrs.frozen
class HostOffset:
    """The time by which the wall clock of a host was ahead of the reference, and its error, ns."""

    host: str
    ahead: int
    error: int
    matched: int


@attrs.frozen
class _Bound:
    """The smallest difference of arrival and sending, by the wall clocks of two hosts, of `count` messages."""

    least: int
    count: int


class Timed(Protocol):
    """An endpoint or a capture: the wall clock by which it timed messages that left and came."""

    shift: int
    wall_known: bool
    error: int
    went: dict[str, int]
    came: dict[str, int]
    repeated: set[str]

    @property
    def clock(self) -> str: ...

    def wall(self, time: int) -> int:
        """Return a time on that clock, ns of the epoch."""


def align(actors: Sequence[Timed]) -> list[HostOffset]:
    """Put all actors on the clock of a reference, and return the clocks of the hosts.

    The reference is the host with most messages. If its clock differs from most others, it is one of those.
    An actor whose trace has no wall clock gets that of its peers, by their messages. Without any wall clock, times
    count from the first record.
    """
    if not actors:
        return []
    _guess_walls(actors)
    bounds = _bounds(actors)
    hosts = sorted({one.clock for one in actors})
    weight = {host: sum(bound.count for pair, bound in bounds.items() if host in pair) for host in hosts}
    reference = max(hosts, key=lambda host: (weight[host], host))
    clocks = {reference: HostOffset(reference, 0, 0, weight[reference])}
    while len(clocks) < len(hosts):
        step = _nearest(clocks, hosts, bounds)
        if step is None:
            break
        clocks[step.host] = step
    clocks = _centred(clocks)
    for actor in actors:
        if actor.clock in clocks:
            actor.shift -= clocks[actor.clock].ahead
            actor.error = clocks[actor.clock].error
    return [clocks.get(host, HostOffset(host, 0, -1, 0)) for host in hosts]


def _centred(clocks: dict[str, HostOffset]) -> dict[str, HostOffset]:
    """Choose the middle clock as reference if it is far from the present one: most hosts have the right time."""
    middle = sorted(clocks.values(), key=lambda one: one.ahead)[(len(clocks) - 1) // 2]
    if abs(middle.ahead) <= FAR_NS:
        return clocks
    return {
        host: attrs.evolve(one, ahead=one.ahead - middle.ahead, error=0 if one is middle else one.error + middle.error)
        for host, one in clocks.items()
    }


def _guess_walls(actors: Iterable[Timed]) -> None:
    """Give actors without a wall clock that of another one on the same host, else of any: hosts may differ by much."""
    known = [one for one in actors if one.wall_known]
    for actor in actors:
        if not actor.wall_known:
            same = [one for one in known if one.clock == actor.clock] or known
            actor.shift = same[0].shift if same else 0


def _bounds(actors: Sequence[Timed]) -> dict[tuple[str, str], _Bound]:
    """Return the bound of each pair of clocks in each direction."""
    senders: dict[str, Timed | None] = {}
    for actor in actors:
        for key in actor.went:
            senders[key] = None if key in senders or key in actor.repeated else actor
    bounds: dict[tuple[str, str], _Bound] = {}
    for actor in actors:
        for key, came in actor.came.items():
            for went in (key, f"via {key}"):
                sender = senders.get(went)
                if sender is None or key in actor.repeated or sender.clock == actor.clock:
                    continue
                took = actor.wall(came) - sender.wall(sender.went[went])
                pair = sender.clock, actor.clock
                before = bounds.get(pair)
                bounds[pair] = _Bound(took, 1) if before is None else _Bound(min(before.least, took), before.count + 1)
    return bounds


def _nearest(
    clocks: dict[str, HostOffset], hosts: list[str], bounds: dict[tuple[str, str], _Bound]
) -> HostOffset | None:
    """Return the clock of the host that is known best through those that are known already."""
    best: HostOffset | None = None
    for host in hosts:
        for known in () if host in clocks else clocks.values():
            there, back = bounds.get((known.host, host)), bounds.get((host, known.host))
            if there is None or back is None:
                continue
            error = known.error + max(0, there.least + back.least) // 2
            if best is None or error < best.error:
                ahead = known.ahead + (there.least - back.least) // 2
                best = HostOffset(host, ahead, error, there.count + back.count)
    return best
