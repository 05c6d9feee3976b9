"""The site of a fleet: `stablecast fleet --serve`. The monitors are asked while somebody looks."""

import asyncio
from collections.abc import Callable

import attrs
from aiohttp import web

from stablecast.ops.fleet.findings import FleetLook
from stablecast.ops.fleet.history import FleetHistory
from stablecast.ops.fleet.page import FOLDER, render
from stablecast.ops.fleet.survey import Survey
from stablecast.ops.monitor import pages
from stablecast.ops.monitor.access import MAX_QUERY, GuardedSite, html
from stablecast.ops.monitor.settings import MonitorSettings
from stablecast.runtime import machine

FRESH_SECONDS = 2.0
"""Age of a survey at which a request makes a new one, in seconds."""

STATIC = (
    *(pages.FOLDER / "static" / name for name in ("monitor.css", "icon.svg")),
    *(FOLDER / "static" / name for name in ("fleet.css", "fleet.js")),
)


class FleetSite(GuardedSite):
    def __init__(self, settings: MonitorSettings, survey: Callable[[], Survey]) -> None:
        """Serve what `survey` finds at the monitors, which it may wait for."""
        super().__init__(settings, *STATIC)
        self._survey = survey
        self._history = FleetHistory()
        self._asking = asyncio.Lock()
        self._newest: FleetLook | None = None
        self._names: dict[str, tuple[str, ...]] = {}
        self._due = 0.0

    def application(self) -> web.Application:
        return self.guarded([web.get("/", self._page), web.get("/api/fleet", self._record)])

    async def _page(self, request: web.Request) -> web.StreamResponse:
        query = request.query.get("q", "")[:MAX_QUERY]
        return html(render(await self._look(), self._history, query))

    async def _record(self, _: web.Request) -> web.StreamResponse:
        return web.json_response((await self._look()).as_json())

    async def _look(self) -> FleetLook:
        """Return the newest survey, or a new one if that is too old. Requests at one time share it."""
        async with self._asking:
            if self._newest is None or machine.clock.monotonic() >= self._due:
                surveyed = attrs.evolve(await asyncio.to_thread(self._survey), remembered=self._names)
                for monitor in {store.monitor for store in surveyed.stores}:
                    self._names[monitor] = tuple(one.name for one in surveyed.stores if one.monitor == monitor)
                number = 1 if self._newest is None else self._newest.number + 1
                self._newest = FleetLook.of(surveyed, number)
                self._history.add(surveyed, self._newest.sources, machine.clock.wall_ns())
                self._due = machine.clock.monotonic() + FRESH_SECONDS
            return self._newest
