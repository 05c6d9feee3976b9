"""Test that an application survives: run it in many worlds, in each of which other things fail.

A world has hosts, stores, a network and disks, all simulated in virtual time. The application is unmodified asyncio
code. A seed draws a schedule of faults, and repeats its run exactly. A failing schedule is shortened and printed.

    @stablecast.testing.world(stores=3, seeds=200, faults=crash("store") | crash("app") | partition())
    async def test_orders_are_booked_once(world):
        world.start(my_app.main, world, host="app")
        await world.settled()
        assert ...

The guide is the chapter "Test that your application survives".
"""

from typing import TYPE_CHECKING, Any

from stablecast.testing.decorator import regression, world
from stablecast.testing.faults import (
    FaultKind,
    FaultKinds,
    clock,
    crash,
    delay,
    duplicate,
    failing_disk,
    full_disk,
    loss,
    partition,
    reorder,
    reset,
    restore,
    rot,
    slow_disk,
    stop,
    wipe,
)

if TYPE_CHECKING:
    from stablecast.testing.programs import Program
    from stablecast.testing.simulated_world import SimulatedWorld

__all__ = [
    "FaultKind",
    "FaultKinds",
    "Program",
    "SimulatedWorld",
    "clock",
    "crash",
    "delay",
    "duplicate",
    "failing_disk",
    "full_disk",
    "loss",
    "partition",
    "regression",
    "reorder",
    "reset",
    "restore",
    "rot",
    "slow_disk",
    "stop",
    "wipe",
    "world",
]


def __getattr__(name: str) -> Any:
    """Return a class for annotations; it is loaded late, because pytest loads this package at each start."""
    if name == "SimulatedWorld":
        from stablecast.testing.simulated_world import SimulatedWorld  # noqa: PLC0415

        return SimulatedWorld
    if name == "Program":
        from stablecast.testing.programs import Program  # noqa: PLC0415

        return Program
    raise AttributeError(name)
