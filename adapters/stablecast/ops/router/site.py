"""The site of a router's monitor.

GET  /                       all portals, their figures, and what is wrong
GET  /portals/NUMBER         one portal: its figures, and the topics and patterns that its domain wants
GET  /api/router             the same as JSON
GET  /metrics                the same for Prometheus
GET  /health, /livez, /readyz
"""

from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import attrs
from aiohttp import web

from stablecast.ops.monitor import pages
from stablecast.ops.monitor.access import GuardedSite, html, missing, probed
from stablecast.ops.monitor.health import HealthFinding, Urgency, worst
from stablecast.ops.monitor.metrics import content_type, of_process
from stablecast.ops.monitor.pages import Page
from stablecast.ops.monitor.settings import MonitorSettings
from stablecast.ops.router import health
from stablecast.ops.router.metrics import exposition
from stablecast.router.views import PortalView, RouterView
from stablecast.runtime import machine
from stablecast.text.open_metrics import OPEN_METRICS

FOLDER: Final = Path(__file__).parent / "templates"
STATIC: Final = tuple(pages.FOLDER / "static" / name for name in ("monitor.css", "icon.svg"))


def record(view: RouterView) -> dict[str, Any]:
    """Return the record of a router for programs; a field may be added but never renamed."""
    made = attrs.asdict(view)
    for portal, one in zip(made["portals"], view.portals, strict=True):
        portal["findings"] = [found.as_json() for found in health.of_portal(one)]
    return {**made, "level": level(view).name, "version": version("stablecast"), "time_ns": machine.clock.wall_ns()}


def level(view: RouterView) -> Urgency:
    return worst(one for portal in view.portals for one in health.of_portal(portal))


class RouterSite(GuardedSite):
    def __init__(self, settings: MonitorSettings, look: Callable[[], RouterView]) -> None:
        """Serve what `look` returns, under the permissions of `settings`."""
        super().__init__(settings, *STATIC)
        self._look = look

    def application(self) -> web.Application:
        return self.guarded(
            [
                web.get("/", self._index),
                web.get(r"/portals/{number:\d{1,9}}", self._portal),
                web.get("/api/router", self._record),
                web.get("/metrics", self._metrics),
                web.get("/health", self._health),
                web.get("/livez", self._alive),
                web.get("/readyz", self._ready),
            ]
        )

    async def _index(self, _: web.Request) -> web.StreamResponse:
        view = self._look()
        found = [
            (f"/portals/{number}", portal.name, one)
            for number, portal in enumerate(view.portals)
            for one in health.of_portal(portal)
        ]
        levels = [worst(health.of_portal(portal)) for portal in view.portals]
        blocks = {
            "banner": _banner(found),
            "portals": _render("portals", {"portals": [*zip(view.portals, levels, strict=True)]}),
            "routes": _render("routes", {"router": view}),
        }
        return html(pages.document(Page(f"Router {view.name}", (), blocks), live=False))

    async def _portal(self, request: web.Request) -> web.StreamResponse:
        view, number = self._look(), int(request.match_info["number"])
        if number >= len(view.portals):
            raise missing(f"there is no portal {number}")
        portal = view.portals[number]
        blocks = {
            "banner": _banner([("/", "", one) for one in health.of_portal(portal)]),
            "facts": _render("portal", {"portal": portal}),
            "interest": _render("interest", {"portal": portal, "wanted": _wanted(portal)}),
        }
        title = f"Portal {portal.name}: {'a link' if portal.link else f'domain {portal.domain}'}"
        return html(pages.document(Page(title, (("/", f"Router {view.name}"),), blocks), live=False))

    async def _record(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(record(self._look()))

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        kind = content_type(request.headers.get("Accept", ""))
        openly = kind == OPEN_METRICS
        text = "".join((*of_process(openly=openly), *exposition(self._look(), openly=openly)))
        return web.Response(body=text.encode(), headers={"Content-Type": kind})

    async def _health(self, _: web.Request) -> web.StreamResponse:
        found = level(self._look())
        return web.json_response({"level": found.name}, status=503 if found is Urgency.CRITICAL else 200)

    async def _alive(self, _: web.Request) -> web.StreamResponse:
        return probed(True)

    async def _ready(self, _: web.Request) -> web.StreamResponse:
        return probed(not any(portal.trouble for portal in self._look().portals))


def _wanted(portal: PortalView) -> int:
    return portal.topics + portal.pcre_patterns + portal.regex_patterns


def _banner(found: Iterable[tuple[str, str, HealthFinding]]) -> str:
    listed = sorted(found, key=lambda linked: -linked[2].level)
    return pages.banner(worst(one for _, _, one in listed), listed)


def _render(template: str, context: dict[str, Any]) -> str:
    return pages.environment(FOLDER).get_template(f"{template}.html").render(context)
