"""One wall clock for all hosts: the clocks of the hosts, corrected by the messages that they exchanged.

A message arrives after it was sent. If A sent a message to B, and B another one to A, then the difference of their
clocks lies between the two smallest differences of sending and arrival. The error is half of what lies between.
"""

from collections.abc import Iterable
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.incident.actors import Actor

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


def align(actors: list[Actor]) -> list[HostOffset]:
    """Put all actors on the clock of the reference, the host with most messages; return the clocks of the hosts.

    An actor whose trace has no wall clock gets that of its peers, by their messages. Without any wall clock, times
    count from the first record.
    """
    if not actors:
        return []
    _guess_walls(actors)
    bounds = _bounds(actors)
    hosts = sorted({one.host for one in actors})
    weight = {host: sum(bound.count for pair, bound in bounds.items() if host in pair) for host in hosts}
    reference = max(hosts, key=lambda host: (weight[host], host))
    clocks = {reference: HostOffset(reference, 0, 0, weight[reference])}
    while len(clocks) < len(hosts):
        step = _nearest(clocks, hosts, bounds)
        if step is None:
            break
        clocks[step.host] = step
    for actor in actors:
        if actor.host in clocks:
            actor.shift -= clocks[actor.host].ahead
            actor.error = clocks[actor.host].error
    return [clocks.get(host, HostOffset(host, 0, -1, 0)) for host in hosts]


def _guess_walls(actors: Iterable[Actor]) -> None:
    """Give actors without a wall clock that of another one on the same host, else of any: hosts may differ by much."""
    known = [one for one in actors if one.wall_known]
    for actor in actors:
        if not actor.wall_known:
            same = [one for one in known if one.host == actor.host] or known
            actor.shift = same[0].shift if same else 0


def _bounds(actors: list[Actor]) -> dict[tuple[str, str], _Bound]:
    """Return the bound of each pair of hosts in each direction."""
    senders: dict[str, Actor | None] = {}
    for actor in actors:
        for key in actor.went:
            senders[key] = None if key in senders or key in actor.repeated else actor
    bounds: dict[tuple[str, str], _Bound] = {}
    for actor in actors:
        for key, came in actor.came.items():
            sender = senders.get(key)
            if sender is None or key in actor.repeated or sender.host == actor.host:
                continue
            took = actor.wall(came) - sender.wall(sender.went[key])
            pair = sender.host, actor.host
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
