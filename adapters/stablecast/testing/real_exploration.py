"""A test on a real machine: once without faults, then with schedules of crashes and stops."""

import asyncio
import tempfile
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.errors import ConfigError
from stablecast.testing.exploration import WorldPlan, WorldReport
from stablecast.testing.faults import FaultKinds
from stablecast.testing.real_world import POSSIBLE, RealWorld
from stablecast.testing.run_options import RunOptions
from stablecast.testing.schedule import Strike, draw
from stablecast.testing.world_run import Body, Failure, Outcome, is_failure

SEEDS: Final = 2
"""Worlds of one test unless the command line gives a number: real time passes in each."""

LONGEST_NS: Final = 1_500_000_000
"""The longest span of a fault in ns."""


class RealExploration:
    def __init__(self, plan: WorldPlan, body: Body, options: RunOptions) -> None:
        self._plan = plan
        self._body = body
        self._options = options
        self.report = WorldReport(real=True)

    def run(self) -> WorldReport:
        """Run the test without faults, and then with schedules; return the report of the first failure."""
        began = time.monotonic()
        clean = self._one(0, ())
        possible = [one for one in self._plan.faults.kinds if one.kind in POSSIBLE and not one.power]
        left_out = [one for one in self._plan.faults.kinds if one not in possible]
        self.report.left_out = sorted({f"{one.kind} (power)" if one.power else one.kind for one in left_out})
        outcome = clean
        for seed in self._seeds() if possible else ():
            if outcome.failure is not None:
                break
            drawn = draw(seed, FaultKinds(tuple(possible)), clean.activity, self._plan.most)
            outcome = self._one(seed, [attrs.evolve(one, span=min(one.span, LONGEST_NS)) for one in drawn])
        self.report.seconds = time.monotonic() - began
        return self.report

    def _seeds(self) -> Sequence[int]:
        if self._options.seed is not None:
            return [self._options.seed]
        return range(1, self._options.seeds or SEEDS)

    def _one(self, seed: int, strikes: Sequence[Strike]) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="stablecast-") as directory:
            outcome = asyncio.run(self._run(RealWorld(seed, Path(directory)), strikes))
        self.report.count(strike.fault for strike in outcome.struck)
        if outcome.failure is not None:
            self.report.found, self.report.first = outcome, len(outcome.strikes)
        return outcome

    async def _run(self, world: RealWorld, strikes: Sequence[Strike]) -> Outcome:
        error: BaseException | None = None
        try:
            await self._watch(world, self._test(world, strikes))
        except BaseException as caught:
            if not is_failure(caught):
                raise
            error = caught
        finally:
            await world.close()
        failure = None if error is None else Failure(error, "", "")
        return Outcome(world.seed, strikes, world.struck, failure, world.timeline, world.activity(), "")

    async def _test(self, world: RealWorld, strikes: Sequence[Strike]) -> None:
        if self._plan.setting.far:
            raise ConfigError("world: only simulated worlds have a router; run this test without --stablecast-real")
        await world.start_stores(self._plan.setting.stores)
        world.arm(strikes)
        await self._body(world)  # type: ignore[arg-type]  # it has the methods of a simulated world

    @staticmethod
    async def _watch(world: RealWorld, body: Coroutine[Any, Any, None]) -> None:
        """Run the test until it ends or a program fails."""
        test = asyncio.ensure_future(body)
        while not test.done():
            await asyncio.wait({test}, timeout=0.1)
            failed = [one.failure for one in world.programs if one.failure is not None]
            if failed:
                test.cancel()
                raise failed[0]
        await test
