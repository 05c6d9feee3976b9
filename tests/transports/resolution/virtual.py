"""Virtual time: drives a resolution machine and records its effects with their instants."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from stablecast.core.machine.units import MILLISECOND, SECOND

EffectT_co = TypeVar("EffectT_co", covariant=True)

MS = MILLISECOND

ADVERTISEMENTS = (0, 10, 30, 70, 150, 310, 630, *range(1130, 5131, 500))
"""Milliseconds after the first tick: 16 in the initial phase."""

QUERIES = (0, 20, 60, 140, 300, *range(500, 5101, 200))
"""Milliseconds after the first tick: 29 in the initial phase."""


PATTERN_QUERIES = (0, 60, 150, 360, 750, *(-(-at // 30) * 30 for at in range(1550, 60_551, 1000)))
"""Milliseconds after the first tick, on a grid of 30 ms: patterns have one long phase."""


class Machine(Protocol[EffectT_co]):
    """The part of the machine contract that time needs."""

    def handle_timeout(self, now: int) -> None: ...
    def next_timeout(self) -> int | None: ...
    def take_effects(self) -> Sequence[EffectT_co]: ...


def play(machine: Machine[EffectT_co], until: int = 10 * SECOND) -> list[tuple[int, EffectT_co]]:
    """Return the effects of the machine up to `until` (ns), each with its instant in whole milliseconds."""
    done: list[tuple[int, EffectT_co]] = []
    while (due := machine.next_timeout()) is not None and due <= until:
        machine.handle_timeout(due)
        done += ((due // MS, effect) for effect in machine.take_effects())
        after = machine.next_timeout()
        assert after is None or after > due, "a machine must not ask for an instant that it has just worked through"
    return done
