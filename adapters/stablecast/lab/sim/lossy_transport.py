"""Simulate a transport without delivery guarantee: runs of a stream are lost, repeated or late.

The transport reports its losses. Of a run of fragments only a part is affected.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.sim.process import Item, VirtualProcess
from stablecast.transports.codec import chained_messages
from stablecast.transports.codec.lbttcp import Run, span

LATE_NS = 20 * MILLISECOND
GIVE_UP_NS = 100 * MILLISECOND
"""Largest delay of a late run, and latest report of a lost one, in ns."""


class RunFate(IntEnum):
    """Name what happens to an affected run."""

    LOST = 0
    TWICE = 1
    LATE = 2


@attrs.define(eq=False)
class Lossy:
    """Filter one subscriber's stream before `on_items`, and affect `percent` of the runs."""

    _process: VirtualProcess
    _percent: int
    _on_items: Callable[[int, Sequence[Item]], None]
    _on_lost: Callable[[int, Run], None]

    def take(self, session_id: int, items: Sequence[Item]) -> None:
        """Pass on the items of the stream that arrive."""
        rng, after = self._process.world.rng, self._process.world.after
        arrived: list[Item] = []
        for item in items:
            if not isinstance(item, Run) or rng.random() >= self._percent / 100:
                arrived.append(item)
                continue
            if item.count > 1 and item.chained:
                before, item = parted(item, rng.randrange(1, item.count))  # noqa: PLW2901  # the rest of it
                arrived.append(before)
            fate = rng.choice(tuple(RunFate))
            if fate is RunFate.TWICE:
                arrived += [item, item]
            elif fate is RunFate.LATE:
                after(int(rng.random() * LATE_NS), self._delivery(self._on_items, session_id, [item]))
            else:
                after(int(rng.random() * GIVE_UP_NS), self._delivery(self._on_lost, session_id, item))
        if arrived:
            self._on_items(session_id, arrived)

    def _delivery(self, receive: Callable[..., None], *what: object) -> Callable[[], None]:
        return lambda: self._process.deliver(lambda: receive(*what))


def parted(run: Run, at: int) -> tuple[Run, Run]:
    """Return a chained run in two parts, of which the first has `at` messages."""
    _, cut = span(run.block, 0, at)
    block, sizes = (
        memoryview(run.block),
        [len(piece.payload) for piece in chained_messages.pieces(run.block, 0, run.count)],
    )
    behind = serial.wire(run.first + at)
    return (
        Run(run.topic_index, run.first, at, sum(sizes[:at]), block[:cut], chained=True),
        Run(run.topic_index, behind, run.count - at, sum(sizes[at:]), block[cut:], chained=True),
    )
