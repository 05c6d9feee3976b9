"""The figures of a watch as metrics: counts of records and sentences, and its own cost."""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.text import refusal
from stablecast.text.open_metrics import TEXT, head, kind_of, label

MAX_SERIES: Final = 1000
"""Rules, endpoints and kinds with series of their own; further ones share the row `*other*`."""

OTHER: Final = "*other*"


class PlaceError(StablecastError):
    """The place of the metrics is wrong or in use."""


@attrs.define
class WatchFigures:
    """Counters since the start, and the present values.

    Attributes:
        records: Records of traces judged.
        frames: Frames of captures judged.
        traces: Traces that are followed.
        waiting: Rounds of facts that wait for other traces.
        polled: Wall clock of the last reading, seconds since 1970.
        cpu: Processor time of the process and its copies, in seconds.
        resident: Its resident memory, in bytes.
        alarms: Sentences by kind, rule and endpoint.
    """

    records: int = 0
    frames: int = 0
    traces: int = 0
    waiting: int = 0
    polled: float = 0.0
    cpu: float = 0.0
    resident: int = 0
    alarms: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)

    def count(self, kind: str, rule: str, whose: str) -> None:
        key = kind, rule, whose
        self.alarms[key if key in self.alarms or len(self.alarms) < MAX_SERIES else (kind, OTHER, OTHER)] += 1

    def exposition(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        values = (
            ("stablecast_watch_records_total", "Records of traces judged.", self.records),
            ("stablecast_watch_frames_total", "Frames of captures judged.", self.frames),
            ("stablecast_watch_traces", "Traces that are followed.", self.traces),
            ("stablecast_watch_waiting_rounds", "Rounds of facts that wait for other traces.", self.waiting),
            ("stablecast_watch_last_reading_timestamp_seconds", "When the watch read its inputs last.", self.polled),
            ("process_cpu_seconds_total", "Processor time.", self.cpu),
            ("process_resident_memory_bytes", "Resident memory.", self.resident),
        )
        lines = [f"{head(name, text, kind_of(name), openly=False)}{name} {value}\n" for name, text, value in values]
        name = "stablecast_watch_alarms_total"
        lines.append(head(name, "Sentences by kind, rule and endpoint.", kind_of(name), openly=False))
        for (kind, rule, whose), count in self.alarms.items():
            labels = f'kind="{label(kind)}",rule="{label(rule)}",whose="{label(whose)}"'
            lines.append(f"{name}{{{labels}}} {count}\n")
        return "".join(lines)


class MetricsServer(ThreadingHTTPServer):
    """The page `/metrics`. It answers from a thread of its own after `begin`."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        """Listen. Raises OSError."""
        self.text = ""
        super().__init__((host, port), _Handler)

    @classmethod
    def at(cls, place: str) -> "MetricsServer":
        """Return a server at `port` or `ip:port`. Raise PlaceError."""
        host, _, port = place.rpartition(":")
        try:
            return cls(host or "127.0.0.1", int(port))
        except (ValueError, OverflowError):
            raise PlaceError(f"'{place}' is no place for metrics: give a port, or ip:port") from None
        except OSError as error:
            raise PlaceError(f"the metrics cannot be served at {place}: {refusal(error)}; name another port") from None

    def begin(self) -> None:
        """Serve from now on, in a thread of its own."""
        threading.Thread(target=self.serve_forever, name="metrics", daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version = "stablecast"
    sys_version = ""

    def do_GET(self) -> None:
        found = self.path.partition("?")[0] == "/metrics"
        body = (self.server.text if found else "there is no such page: the metrics are at /metrics\n").encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", TEXT if found else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the base class
        """Log nothing: scrapes come for ever."""
