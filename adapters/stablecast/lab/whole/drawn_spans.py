"""Draw worlds that last longer, so that faults last longer than each time-out, and disks of several stores are lost.

The clock is stretched, not the count: faults and pauses are longer by one factor, and the messages are as many.
"""

from random import Random
from typing import Final

import attrs

from stablecast.lab.whole.schedule import DAEMON, DISK_FAULTS, HORIZON_MS, STORES, Do, HostFault, WorldSchedule

LONG_SHARE: Final = 0.06
"""Share of the seeds with long faults."""

FACTORS: Final = (3, 9)
"""Factors to choose from. Faults of 4 s then last longer than receivers wait for a store (10 s), or a lease (30 s)."""

WEAK_SHARE: Final = 0.03
"""Share of the seeds in which two stores lose their disks, one after the other."""

REFILL_MS: Final = 15_000
"""Time without any fault, in which the first store gets its messages back; the conductor checks that it did."""

WHOLE_DISK: Final = Do.WIPE
"""The fault in place of one that a store notices late, or that ends it."""


def long(rng: Random, schedule: WorldSchedule) -> WorldSchedule:
    """Return the schedule, in few seeds with longer faults, or with those of a second store after them."""
    setup = schedule.setup
    if setup.storage or setup.tight:
        return schedule
    drawn = rng.random()
    if drawn < LONG_SHARE:
        return _stretched(schedule, rng.choice(FACTORS))
    if drawn < LONG_SHARE + WEAK_SHARE and schedule.seed % 2 and "ume_store_group" not in dict(setup.options):
        return _twice(rng, schedule)
    return schedule


def _stretched(schedule: WorldSchedule, factor: int) -> WorldSchedule:
    faults = tuple(
        attrs.evolve(fault, at_ms=fault.at_ms * factor, span_ms=fault.span_ms * factor) for fault in schedule.faults
    )
    setup = attrs.evolve(schedule.setup, pause_ms=schedule.setup.pause_ms * factor)
    return attrs.evolve(schedule, setup=setup, faults=faults, horizon_ms=schedule.horizon_ms * factor)


def _twice(rng: Random, schedule: WorldSchedule) -> WorldSchedule:
    """Let the faults happen again after a pause, with another weak store. At least one disk is lost each time."""
    first, second = rng.sample([name for name in STORES if not (schedule.setup.daemon and name == DAEMON)], 2)
    later = HORIZON_MS + REFILL_MS

    def of(weak: str, after: int) -> list[HostFault]:
        at = rng.randrange(HORIZON_MS - 1_000)
        faults = [*schedule.faults, HostFault(at, WHOLE_DISK, weak, rng.randint(1, 1_000))]
        return [
            attrs.evolve(fault, at_ms=fault.at_ms + after)
            if fault.do not in DISK_FAULTS
            else attrs.evolve(fault, at_ms=fault.at_ms + after, do=WHOLE_DISK, who=weak)
            for fault in faults
            if not (after and fault.do is Do.LEAVE)
        ]

    setup = attrs.evolve(schedule.setup, pause_ms=schedule.setup.pause_ms * 4)
    faults = (*of(first, 0), *of(second, later))
    return attrs.evolve(schedule, setup=setup, faults=faults, horizon_ms=later + HORIZON_MS)
