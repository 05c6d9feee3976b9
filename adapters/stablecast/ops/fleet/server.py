"""Serve the page of a fleet: `stablecast fleet --serve`. The monitors are asked while somebody looks."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import attrs

from stablecast.ops.fleet.copies import joined
from stablecast.ops.fleet.findings import findings, worst
from stablecast.ops.fleet.history import FleetHistory
from stablecast.ops.fleet.page import FOLDER, FleetLook, render
from stablecast.ops.fleet.survey import Survey, survey
from stablecast.ops.monitor import access, pages

FRESH_SECONDS: Final = 2.0
"""Age of a survey at which a request makes a new one, in seconds."""

MAX_QUERY: Final = 256
"""Longest search text, in characters."""

STATIC: Final = {
    "/static/monitor.css": (pages.FOLDER / "static" / "monitor.css", "text/css"),
    "/static/icon.svg": (pages.FOLDER / "static" / "icon.svg", "image/svg+xml"),
    "/static/fleet.css": (FOLDER / "static" / "fleet.css", "text/css"),
    "/static/fleet.js": (FOLDER / "static" / "fleet.js", "text/javascript"),
}
"""The files that are served, with their media types."""


class FleetServer(ThreadingHTTPServer):
    """The page and `/api/fleet` of a fleet, for everyone who reaches the address. Call `serve_forever`."""

    daemon_threads = True

    def __init__(self, host: str, port: int, look: Callable[[], Survey]) -> None:
        """Listen. `look` surveys the monitors. Raises OSError."""
        self.local = ip_address(host).is_loopback
        self._survey = look
        self._history = FleetHistory()
        self._lock = threading.Lock()
        self._newest: FleetLook | None = None
        self._names: dict[str, tuple[str, ...]] = {}
        self._due = 0.0
        super().__init__((host, port), _Handler)

    @classmethod
    def of(cls, host: str, port: int, monitors: Sequence[str], token: str) -> "FleetServer":
        """Return a server of these monitors. Raises OSError."""
        return cls(host, port, lambda: survey(monitors, token))

    def page(self, query: str) -> str:
        """Return the page with the sources that match a query."""
        look = self.look()
        return render(look, self._history, query)

    def as_json(self) -> dict[str, Any]:
        """Return the fleet for programs."""
        look = self.look()
        return {
            "level": worst(look.findings).name,
            "findings": [one.as_json() for one in look.findings],
            "silent": look.surveyed.silent,
            "sources": [one.as_json() for one in look.sources],
        }

    def look(self) -> FleetLook:
        """Return the newest survey, or a new one if that is too old. Requests at one time share it."""
        with self._lock:
            if self._newest is None or time.monotonic() >= self._due:
                surveyed = attrs.evolve(self._survey(), remembered=self._names)
                for monitor in {store.monitor for store in surveyed.stores}:
                    self._names[monitor] = tuple(one.name for one in surveyed.stores if one.monitor == monitor)
                sources = joined(surveyed)
                number = 1 if self._newest is None else self._newest.number + 1
                self._newest = FleetLook(surveyed, sources, findings(surveyed, sources), number)
                self._history.add(surveyed, sources, time.time_ns())
                self._due = time.monotonic() + FRESH_SECONDS
            return self._newest


class _Handler(BaseHTTPRequestHandler):
    """Answer GET requests; everything else is refused by the base class."""

    server: FleetServer
    server_version = "stablecast"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the page, the record or a file."""
        asked = urlsplit(self.path)
        if self.server.local and not access.is_local(self.headers.get("Host", "")):
            self._answer(421, "text/plain", b"this page answers only to names of this host\n")
        elif asked.path in STATIC:
            path, kind = STATIC[asked.path]
            self._answer(200, kind, path.read_bytes())
        elif asked.path == "/api/fleet":
            self._answer(200, "application/json", json.dumps(self.server.as_json()).encode())
        elif asked.path == "/":
            query = parse_qs(asked.query).get("q", [""])[0][:MAX_QUERY]
            self._answer(200, "text/html", self.server.page(query).encode())
        else:
            self._answer(404, "text/plain", b"there is no such page: the fleet is at /\n")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in access.HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the base class
        """Log nothing: a page that renews itself would fill the terminal."""
