"""A fleet as one HTML page: problems first, then totals, sources and stores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.fleet.copies import FleetSource
from stablecast.ops.fleet.findings import FleetLook, silent_stores
from stablecast.ops.fleet.history import FleetHistory
from stablecast.ops.fleet.screen import least_safe
from stablecast.ops.fleet.survey import SurveyedRouter, SurveyedStore
from stablecast.ops.monitor import figures, pages
from stablecast.ops.monitor.health import Urgency
from stablecast.ops.monitor.pictures import sparkline

FOLDER: Final = Path(__file__).parent

MAX_FINDINGS: Final = 20
"""Findings that a page shows."""

MAX_ROWS: Final = 100
"""Sources that a page shows; a search finds the others."""


@attrs.frozen
class _Tile:
    name: str
    value: str
    level: int = 0
    spark: str = ""
    since: str = ""


def render(look: FleetLook, history: FleetHistory, query: str = "") -> str:
    """Return the whole page as HTML; `query` is a part of a topic or of a store's name."""
    found = [one for one in look.sources if query in one.topic or any(query in copy.store.name for copy in one.copies)]
    levels = _levels(look)
    return (
        pages.environment(FOLDER)
        .get_template("fleet.html")
        .render(
            surveys=look.number,
            level=look.level.name.lower(),
            rank=look.level.value,
            findings=look.findings,
            shown=MAX_FINDINGS,
            total=len(look.sources),
            tiles=_tiles(look, history),
            query=query,
            found=len(found),
            rows=[_row(one, levels) for one in sorted(found, key=least_safe)[:MAX_ROWS]],
            stores=[_store(one, history) for one in sorted(look.surveyed.stores, key=_by_level)],
            silent=[(", ".join(silent_stores(look.surveyed, one)) or "a store", one) for one in look.surveyed.silent],
            words=[one.name.lower() for one in Urgency],
            services=look.surveyed.services,
            routers=[_router(one) for one in look.surveyed.routers],
        )
    )


def _by_level(store: SurveyedStore) -> tuple[int, str]:
    return -Urgency[store.record["level"]], store.name


def _levels(look: FleetLook) -> dict[str, int]:
    """Return the level of the most urgent finding by its subject."""
    levels: dict[str, int] = {}
    for one in look.findings:
        for subject in one.subjects:
            levels[subject] = max(levels.get(subject, 0), one.level)
    return levels


def _tiles(look: FleetLook, history: FleetHistory) -> list[_Tile]:
    sources, stores = look.sources, look.surveyed.stores
    well = sum(not one.record["failure"] for one in stores)
    named = len(stores) + len(look.surveyed.silent)
    without = sum(one.active and one.spare is not None and one.spare < 0 for one in sources)
    last = sum(one.active and one.spare == 0 and (one.needed or 0) < one.replicas for one in sources)
    missing, lag = sum(one.missing for one in sources), max((one.lag for one in sources), default=0)
    rates, since = history.rates(), f"-{figures.span(history.span_ns)}"

    def series(values: Sequence[float]) -> dict[str, Any]:
        return {"spark": sparkline(values), "since": since} if len(values) > 1 else {}

    return [
        _Tile("Stores that serve", f"{well} of {named}", 0 if well == named else 3),
        _Tile("Sources without a quorum", figures.count(without), 3 if without else 0),
        _Tile("Sources with no store to spare", figures.count(last), 2 if last else 0),
        _Tile("Messages below replication", figures.count(missing), 2 if missing else 0,
              **series([one.missing for one in history.samples])),
        _Tile("Messages a second", figures.short(rates[-1]) if rates else "–", **series(rates)),
        _Tile("Lag of the slowest receiver", figures.count(lag), **series([one.lag for one in history.samples])),
        _Tile("Sources", figures.count(len(sources))),
        _Tile("Clocks apart", figures.span(_apart(stores))),
    ]  # fmt: skip


def _apart(stores: Sequence[SurveyedStore]) -> int:
    clocks = [one.clock_ns for one in stores]
    return max(clocks) - min(clocks) if clocks else 0


def _row(source: FleetSource, levels: dict[str, int]) -> dict[str, Any]:
    return {
        "id": "source-" + "-".join(map(str, source.life[1:])),
        "topic": source.topic,
        "level": levels.get(f"topic {source.topic}", 0),
        "stores": source.served(" of "),
        "needed": " + ".join(str(one.needed) for one in source.groups) or "?",
        "spare": _spare(source),
        "newest": figures.count(source.newest),
        "safe": "?" if source.safe_through is None else figures.count(source.safe_through),
        "missing": source.missing,
        "lag": source.lag,
    }


def _spare(source: FleetSource) -> str:
    """Return how many stores a source can lose. One that is not active needs none."""
    if not source.active:
        return "–"
    return "?" if source.spare is None else "no quorum" if source.spare < 0 else str(source.spare)


def _store(store: SurveyedStore, history: FleetHistory) -> dict[str, Any]:
    record = store.record
    free, least = record.get("room", (-1, 0))
    left = history.until_full_ns(store.name, least)
    longest = record.get("journal", {}).get("longest_sync_ns")
    return {
        "name": store.name,
        "level": Urgency[record["level"]].value,
        "sources": len(store.sources),
        "free": "?" if free < 0 else figures.size(free),
        "until_full": "–" if left is None else figures.span(left),
        "longest": "?" if longest is None else figures.span(longest),
        "clock": f"{store.clock_ns / SECOND:+.3f} s",
        "monitor": store.where,
    }


def _router(router: SurveyedRouter) -> dict[str, Any]:
    portals = router.record["portals"]
    return {
        "name": router.name,
        "level": Urgency[router.record["level"]].value,
        "domains": ", ".join(map(str, router.domains)),
        "passed": figures.count(sum(one["sent"]["messages"] for one in portals)),
        "dropped": figures.count(sum(count for one in portals for count in one["dropped"].values())),
        "waiting": figures.size(sum(one["queue"]["now"] for one in portals)),
        "monitor": router.monitor,
    }
