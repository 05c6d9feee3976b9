"""Render the pages: a title and blocks of HTML, each from its own template.

The first answer holds all blocks in the layout, and the live feed sends only blocks that changed. A page therefore
looks the same live and reloaded. The template engine escapes all data of peers.
"""

import math
import platform
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from stablecast.ops.monitor import figures, health, pictures
from stablecast.ops.monitor.board import Board, ClientFinding, Snapshot, SourceRow, Spans, StoreHistory, findings_of
from stablecast.ops.monitor.health import HealthFinding, Urgency, worst
from stablecast.runtime import machine
from stablecast.runtime.source_strings import is_source_string
from stablecast.store.observatory import ReceiverView, SourceView

FOLDER = Path(__file__).parent
ROWS = 100
"""Most sources or receivers on one page of a table."""

Linked = tuple[str, str, HealthFinding]
"""Path of a finding, name of its client, and the finding."""


@attrs.frozen
class Page:
    """Hold a page: block ids with their HTML, in order. `crumbs` are pairs of path and text."""

    title: str
    crumbs: tuple[tuple[str, str], ...]
    blocks: dict[str, str]


@attrs.frozen
class Query:
    """Select sources whose topic or RegID contains `text`, with their order and the page of the table."""

    text: str = ""
    order: str = "health"
    page: int = 0

    def matches(self, row: SourceRow) -> bool:
        return self.text in row.topic or self.text in str(row.reg_id)

    def link(self, page: int) -> str:
        return "?" + urlencode({"q": self.text, "sort": self.order, "page": page})


ORDERS: dict[str, Callable[[SourceRow], tuple[Any, ...]]] = {
    "health": lambda row: (-row.level, -row.lag, row.reg_id),
    "lag": lambda row: (-row.lag, row.reg_id),
    "held": lambda row: (-row.messages, row.reg_id),
    "topic": lambda row: (row.topic, row.reg_id),
}
"""Sort keys of the sources by the name of the order."""


def wanted(snapshot: Snapshot, query: Query) -> list[SourceRow]:
    """Return the selected sources of a store, sorted."""
    return sorted((row for row in snapshot.rows.values() if query.matches(row)), key=ORDERS[query.order])


def index(board: Board) -> Page:
    """Return the overview of the daemon (P-901)."""
    facts = {
        "version": version("stablecast"),
        "built": _built(),
        "library": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "now": machine.clock.wall_ns(),
        "pid": machine.process.pid(),
        "started": machine.process.started_ns(),
    }
    blocks = {
        "banner": banner(board.level, _urgent(board.stores)),
        "totals": _render("totals", _totals(board.stores)),
        "stores": _render("stores", {"stores": board.stores}),
        "about": _render("about", facts),
    }
    return Page("Overview", (), blocks)


def stores(board: Board) -> Page:
    """Return the list of stores (P-902)."""
    blocks = {"stores": _render("stores", {"stores": board.stores})}
    return Page("Stores", (("/", "Overview"),), blocks)


def store(board: Board, number: int, query: Query, writable: bool) -> Page:
    """Return the page of one store (P-903 to P-907)."""
    snapshot = board.stores[number]
    found = wanted(snapshot, query)
    pages = max(1, math.ceil(len(found) / ROWS))
    page = min(query.page, pages - 1)
    listed = {
        "number": number,
        "rows": found[page * ROWS : (page + 1) * ROWS],
        "found": len(found),
        "pages": pages,
        "page": page,
        "query": query,
    }
    about = {"number": number, "store": snapshot.view, "writable": writable}
    blocks = {
        "banner": banner(snapshot.level, _urgent([snapshot])),
        "totals": _render("totals", _totals([snapshot])),
        "search": _render("search", {"query": query, "orders": tuple(ORDERS)}),
        "sources": _render("sources", listed),
        "service": _render("service", about),
        "facts": _render("store", about),
    }
    return Page(f"Store {number}: {snapshot.view.name or snapshot.view.address}", _crumbs(), blocks)


def source(snapshot: Snapshot, view: SourceView, spans: Spans | None, writable: bool) -> Page:
    """Return the page of one source (P-908 to P-921)."""
    number, said = snapshot.view.index, findings_of(view)
    receivers = [(one, worst(health.of_receiver(one, view))) for one in view.receivers[:ROWS]]
    row = snapshot.rows.get(view.reg_id) or SourceRow(view.reg_id)
    context = {"number": number, "source": view, "spans": spans, "row": row, "receivers": receivers}
    blocks = {
        "banner": banner(
            worst(finding for _, finding in said), _linked(f"/stores/{number}", view.topic, view.reg_id, said)
        ),
        "window": _render("window", context),
        "receivers": _render("receivers", context),
        "facts": _render("source", context),
        "control": _render("control", {"number": number, "reg_id": view.reg_id, "writable": writable}),
    }
    title = f"{view.reg_id}: Source [{_place(view.address, view.session_index, view.topic_index)}]"
    return Page(title, (*_crumbs(), (f"/stores/{number}", f"Store {number}")), blocks)


def receiver(number: int, view: ReceiverView, its_source: SourceView, writable: bool) -> Page:
    """Return the page of one receiver (P-922, P-923)."""
    findings = [(f"/stores/{number}/{view.source_reg_id}", "", one) for one in health.of_receiver(view, its_source)]
    blocks = {
        "banner": banner(worst(finding for _, _, finding in findings), findings),
        "facts": _render("receiver", {"number": number, "receiver": view, "source": its_source}),
        "control": _render("control", {"number": number, "reg_id": view.reg_id, "writable": writable}),
    }
    title = f"{view.reg_id}: Receiver [{_place(view.address, view.session_index, view.topic_index)}]"
    way = (
        *_crumbs(),
        (f"/stores/{number}", f"Store {number}"),
        (f"/stores/{number}/{view.source_reg_id}", f"Source {view.source_reg_id}"),
    )
    return Page(title, way, blocks)


def notice(title: str, text: str, back: str) -> Page:
    """Return a page with one sentence and a link back."""
    return Page(title, (("/", "Overview"),), {"notice": _render("notice", {"text": text, "back": back})})


def login(wrong: bool) -> Page:
    return Page("Token", (), {"login": _render("login", {"wrong": wrong})})


def document(page: Page, live: bool) -> str:
    return environment(FOLDER / "templates").get_template("layout.html").render(page=page, live=live)


def _render(template: str, context: dict[str, Any]) -> str:
    return environment(FOLDER / "templates").get_template(f"{template}.html").render(context)


@cache
def environment(folder: Path) -> Environment:
    loader = FileSystemLoader(folder)
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters.update(figures.FILTERS, spark=lambda series: pictures.sparkline(series.values))
    made.globals.update(
        sparkline=pictures.sparkline,
        gauge=pictures.gauge,
        strip=pictures.strip,
        is_source_string=is_source_string,
        since=lambda instant: machine.clock.wall_ns() - instant,
    )
    return made


def banner(level: Urgency, findings: list[Linked]) -> str:
    return _render("banner", {"level": level, "findings": findings[:ROWS], "more": len(findings[ROWS:])})


def _urgent(snapshots: Iterable[Snapshot]) -> list[Linked]:
    """Return findings with their links, the most urgent first, at most one for each source and its receivers.

    Equal findings of many sources of a store become one: a thousand silent sources must not hide other findings.
    """
    found: list[Linked] = []
    for snapshot in snapshots:
        where = f"/stores/{snapshot.view.index}"
        found += [(where, f"Store {snapshot.view.index}", finding) for finding in snapshot.findings]
        shared: dict[HealthFinding, list[Linked]] = {}
        for row in snapshot.rows.values():
            for linked in _linked(where, row.topic, row.reg_id, row.findings[:1]):
                shared.setdefault(linked[2], []).append(linked)
        found += [
            (path, figures.among(what, len(alike)), finding)
            for finding, alike in shared.items()
            for path, what, _ in alike[:1]
        ]
    return sorted(found, key=lambda linked: (-linked[2].level, linked[0]))


def _linked(where: str, topic: str, source: int, said: Iterable[ClientFinding]) -> list[Linked]:
    return [
        (f"{where}/{reg_id}", topic if reg_id == source else f"{topic}, receiver {reg_id}", finding)
        for reg_id, finding in said
    ]


def _totals(snapshots: list[Snapshot]) -> dict[str, Any]:
    rows = [row for snapshot in snapshots for row in snapshot.rows.values()]
    return {
        "sources": len(rows),
        "receivers": sum(snapshot.view.receivers for snapshot in snapshots),
        "held": sum(row.messages for row in rows),
        "holes": sum(row.holes for row in rows),
        "lacking": sum(sum(row.lacking) for row in rows),
        "lost": sum(row.lost for row in rows),
        "drops": sum(row.drops for row in rows),
        "disk": sum(snapshot.view.journal.disk_bytes for snapshot in snapshots),
        "tiles": _sums([snapshot.history for snapshot in snapshots]),
    }


def _sums(histories: list[StoreHistory]) -> dict[str, list[float]]:
    """Return the sums of the stores' histories, aligned at the newest sample; of the lags the maximum."""
    summed = {
        "rate": [list(history.rate.values) for history in histories],
        "served": [list(history.served.values) for history in histories],
        "queued": [list(history.queued.values) for history in histories],
    }
    found = {name: [sum(column) for column in _columns(rows)] for name, rows in summed.items()}
    found["lag"] = [max(column) for column in _columns([list(history.lag.values) for history in histories])]
    return found


def _columns(rows: list[list[float]]) -> list[tuple[float, ...]]:
    shortest = min((len(row) for row in rows), default=0)
    return list(zip(*(row[len(row) - shortest :] for row in rows), strict=True))


def _crumbs() -> tuple[tuple[str, str], ...]:
    return (("/", "Overview"), ("/stores", "Stores"))


def _place(address: str, session_index: int, topic_index: int) -> str:
    """Return the address in the form of the documented titles, to match with a capture (P-908)."""
    return f"{address.replace(':', '.')} {session_index}.{topic_index}"


@cache
def _built() -> int:
    """Return the time of installation in ns, from the modification time of this file."""
    return machine.installed_at_ns(Path(__file__))
