"""Show a store and its sources in a terminal, from the monitor's JSON, for `stablecast top`."""

from collections.abc import Iterable
from typing import Any

import attrs
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import figures
from stablecast.ops.monitor.health import Urgency
from stablecast.ops.operations.monitor_client import MonitorClient
from stablecast.text import plural

COLOURS = {"OK": "green", "NOTICE": "blue", "WARNING": "yellow", "CRITICAL": "red"}
ORDERS = ("health", "lag", "held", "topic")


@attrs.define
class Top:
    """Render the screen. Rates need two calls of `render`, so the first screen has none."""

    client: MonitorClient
    order: str = "health"
    rows: int = 20
    _leads: dict[int, tuple[int, int]] = attrs.field(factory=dict)

    def render(self) -> RenderableType:
        """Return the screen with current figures. Raises OperationError."""
        store = self.client.store()
        page = self.client.sources(self.order, limit=self.rows)
        taken = store["taken_ns"]
        table = Table(expand=True, box=None, header_style="bold", pad_edge=False)
        table.add_column("topic", no_wrap=True)
        table.add_column("source", no_wrap=True, min_width=10)
        for name in ("held", "newest", "in/s", "missing", "lost", "lag", "receivers"):
            table.add_column(name, justify="right")
        for one in page["sources"]:
            table.add_row(*self._row(one, taken), style=COLOURS[one["level"]] if one["level"] != "OK" else "")
        self._leads = {one["reg_id"]: (taken, one["window"][2]) for one in page["sources"]}
        return Group(
            *_head(store, page["sources"]),
            table,
            Text(f"{len(page['sources'])} of {page['found']} sources", style="dim"),
        )

    def _row(self, source: dict[str, Any], taken: int) -> list[str]:
        lead = source["window"][2]
        before, known = self._leads.get(source["reg_id"], (taken, lead))
        rate = figures.short((lead - known) * SECOND / (taken - before)) if taken > before else "-"
        lag = max((reader["lag"] for reader in source["receivers"]), default=0)
        columns = (source["holes"], source["lost"], lag, len(source["receivers"]))
        held = figures.short(source["messages"])
        return [source["topic"], str(source["reg_id"]), held, str(lead), rate, *map(figures.short, columns)]


def _head(store: dict[str, Any], sources: list[dict[str, Any]]) -> list[Text]:
    level = store["level"]
    up = figures.span(store["taken_ns"] - store["started_ns"])
    rate, received, served, dropped, _, ever_dropped = store["requests"]
    journal = store["journal"]
    first = Text.assemble(
        (f"{store['name'] or store['address']}  ", "bold"),
        f"{store['address']}  up {up}  {plural(store['sources'], 'source')}  "
        f"{plural(store['receivers'], 'receiver')}  ",
        (level, f"bold {COLOURS[level]}"),
    )
    second = Text(
        f"requests {received}/s of {rate}/s, served {served}/s, dropped {dropped}/s ({ever_dropped} ever)   "
        f"journal {figures.size(journal['disk_bytes'])}, {figures.size(journal['queued_bytes'])} unsynced, "
        f"longest sync {figures.span(journal['longest_sync_ns'])}",
        style="dim",
    )
    found = [Text(f"{level.lower()}: {text}", style=COLOURS[level]) for level, text in warnings_of(store, sources)]
    return [first, second, *found, Text()]


def warnings_of(store: dict[str, Any], sources: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the levels and texts of all findings, the most urgent first; equal ones of several clients are joined."""
    shared: dict[tuple[str, str], list[str]] = {}
    for source in sources:
        readers = ((f"{source['topic']}, receiver {reader['reg_id']}", reader) for reader in source["receivers"])
        for name, client in ((source["topic"], source), *readers):
            for finding in client["findings"]:
                shared.setdefault((finding["level"], finding["text"]), []).append(name)
    found = [(finding["level"], finding["text"]) for finding in store["findings"]]
    found += [(level, f"{figures.among(names[0], len(names))}: {text}") for (level, text), names in shared.items()]
    return sorted(found, key=lambda one: -Urgency[one[0]])
