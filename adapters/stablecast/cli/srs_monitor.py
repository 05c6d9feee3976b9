"""The monitor of a service: statistics as JSON and as metrics over HTTP, and the documented requests.

GET  /api/statistics/KIND?first=0&count=256    a kind of statistics, for example um-client-stats
GET  /api/topics?first=0&count=256             sources and receivers of each topic
GET  /api/topics/TOPIC                         the same of one topic
GET  /metrics                                  the counters of the service, for Prometheus
POST /api/requests                             {"request": "REPORT_MONITOR_INFO", "monitorInfoCategory": "SRS_STATS"}
"""

from collections.abc import Callable
from typing import Any

import attrs
from aiohttp import web

from stablecast.core.errors import StablecastError
from stablecast.ops.monitor.access import GuardedSite
from stablecast.ops.monitor.settings import MonitorSettings, Permission
from stablecast.resolver.srs import SrsDaemon
from stablecast.resolver.srs.config import CATEGORIES, INTERVAL
from stablecast.resolver.srs.statistics import MAX_CLIENTS, Body
from stablecast.runtime import address
from stablecast.runtime.interfaces import resolved_place
from stablecast.text import nearest
from stablecast.text.json_text import from_json
from stablecast.text.release import release
from stablecast.transports.resolution.srs import statistics

MAX_FIRST = 1 << 31
"""Largest index of the first client or topic of an answer."""


class SrsSite(GuardedSite):
    """The monitor of one service; requests are answered only on loopback."""

    def __init__(self, daemon: SrsDaemon) -> None:
        """Describe the monitor of a service that runs. Raises AddressError."""
        wanted = daemon.config.debug
        host, port = address.parse(resolved_place(address.join(wanted.interface, wanted.port)))
        # The configuration permits requests. The guard keeps web pages of other sites from sending them.
        permission = Permission.READ_WRITE if host.startswith("127.") else Permission.READ_ONLY
        super().__init__(MonitorSettings(host, port, permission))
        self._daemon = daemon
        self._details = daemon.details

    def application(self) -> web.Application:
        """Return the application with its routes and middlewares."""
        return self.guarded(
            [
                web.get("/", self._index),
                web.get("/api", self._index),
                web.get("/api/statistics/{category}", self._statistics),
                web.get("/api/topics", self._topics),
                web.get("/api/topics/{topic:.+}", self._topic),
                web.get("/metrics", self._metrics),
                web.post("/api/requests", self._request),
            ]
        )

    async def _index(self, _: web.Request) -> web.Response:
        return web.json_response(
            {"release": release(), "address": self._daemon.address, **self._details.snapshot("srs-stats")}
        )

    async def _statistics(self, request: web.Request) -> web.Response:
        return web.json_response(self._details.snapshot(_category(request.match_info["category"]), *_part(request)))

    async def _topics(self, request: web.Request) -> web.Response:
        return web.json_response(self._details.topics(*_part(request)))

    async def _topic(self, request: web.Request) -> web.Response:
        return web.json_response(attrs.asdict(statistics.of_topic(self._details.service, request.match_info["topic"])))

    async def _metrics(self, _: web.Request) -> web.Response:
        counters: dict[str, int] = {}
        for category in ("srs-stats", "srs-error-stats"):
            counters |= self._details.snapshot(category)["counters"]
        names = {name: f"stablecast_srs_{name.removesuffix('.count').replace('.', '_').lower()}" for name in counters}
        lines = [f"# TYPE {names[name]} gauge\n{names[name]} {value}\n" for name, value in counters.items()]
        return web.Response(text="".join(lines), content_type="text/plain")

    async def _request(self, request: web.Request) -> web.Response:
        """Answer one of the documented requests, as far as the configuration permits it."""
        try:
            asked = from_json(await request.text())
        except ValueError:
            raise _wrong("a request is JSON") from None
        if not isinstance(asked, dict):
            raise _wrong("a request is a JSON object")
        answers: dict[str, Callable[[dict[str, Any]], Body]] = {
            "REPORT_SRS_VERSION": lambda _: {"version": release()},
            "REPORT_MONITOR_INFO": self._report,
            "SET_PUBLISHING_INTERVAL": self._set_interval,
        }
        name = str(asked.get("request", ""))
        if name not in answers:
            raise _wrong(f"there is no request '{name}': {nearest(name, answers) or ', '.join(answers)}")
        permitted = self._daemon.config.monitor
        if not (permitted.changes if name == "SET_PUBLISHING_INTERVAL" else permitted.snapshots):
            option = "remote-config-changes-request" if name == "SET_PUBLISHING_INTERVAL" else "remote-snapshot-request"
            raise web.HTTPForbidden(text=f"{option} does not permit this request\n")
        return web.json_response(answers[name](asked))

    def _report(self, asked: dict[str, Any]) -> Body:
        return self._details.snapshot(_category(str(asked.get("monitorInfoCategory", ""))))

    def _set_interval(self, asked: dict[str, Any]) -> Body:
        """Set the interval of a kind until the service ends: it is not written to a file."""
        category = _category(str(asked.get("category", "")))
        value = asked.get("publishingInterval")
        if not isinstance(value, int):
            raise _wrong("publishingInterval is a number of milliseconds")
        try:
            INTERVAL.merge("publishingInterval", None, value)
        except StablecastError as error:
            raise _wrong(str(error)) from None
        self._details.intervals[category] = value
        return {"category": category, "publishingInterval": value}


def _category(name: str) -> str:
    """Return a kind of statistics, written as in files or as in requests. Raises HTTPBadRequest."""
    plain = name.lower().replace("_", "-")
    if plain not in CATEGORIES:
        raise _wrong(f"there are no statistics '{name}': {nearest(plain, CATEGORIES) or ', '.join(CATEGORIES)}")
    return plain


def _part(request: web.Request) -> tuple[int, int]:
    """Return the first index and the count that a request asks for. Raises HTTPBadRequest."""
    found = []
    for name, usual, most in (("first", 0, MAX_FIRST), ("count", MAX_CLIENTS, MAX_CLIENTS)):
        text = request.query.get(name, str(usual))
        if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most):
            raise _wrong(f"{name} is a number from 0 to {most}")
        found.append(int(text))
    return found[0], found[1]


def _wrong(text: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=f"{text}\n")
