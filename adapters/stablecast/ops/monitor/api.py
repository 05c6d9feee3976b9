"""Convert records to JSON. Names are those of `store.observatory`; a field may be added but never renamed."""

from importlib.metadata import version
from typing import Any

import attrs

from stablecast.ops.monitor import health
from stablecast.ops.monitor.board import STALE_NS, Board, Snapshot, Spans, findings_of
from stablecast.runtime import machine
from stablecast.store.observatory import ReceiverView, SourceView

LIMIT = 200
"""Most sources in one answer."""


def daemon(board: Board) -> dict[str, Any]:
    return {
        "version": version("stablecast"),
        "time_ns": machine.clock.wall_ns(),
        "level": board.level.name,
        "stores": [store(one) for one in board.stores],
    }


def condition(board: Board) -> dict[str, Any]:
    """Return the health of the daemon; `fresh` is False if a store's loop has stopped answering."""
    return {
        "level": board.level.name,
        "fresh": board.sweeps > 0 and board.age_ns < STALE_NS,
        "failed": [one.view.index for one in board.stores if one.view.failure],
    }


def grants(board: Board) -> bool:
    """Return whether all stores answer and grant registrations to clients that they know."""
    views = [one.view for one in board.stores]
    return bool(condition(board)["fresh"]) and not any(view.failure or view.muted_for_ns for view in views)


def store(snapshot: Snapshot) -> dict[str, Any]:
    """Return the record of one store, without its sources."""
    shown = attrs.asdict(snapshot.view, filter=attrs.filters.exclude("topics"))
    return {**shown, "level": snapshot.level.name, "findings": [one.as_json() for one in snapshot.findings]}


def source(view: SourceView, spans: Spans | None = None) -> dict[str, Any]:
    shown = attrs.asdict(view)
    shown["receivers"] = [receiver(one, view) for one in view.receivers]
    level = health.worst(finding for _, finding in findings_of(view))
    record = {**shown, "level": level.name, "findings": [one.as_json() for one in health.of_source(view)]}
    return record if spans is None else {**record, "spans": attrs.asdict(spans)}


def receiver(view: ReceiverView, its_source: SourceView) -> dict[str, Any]:
    return {**attrs.asdict(view), "findings": [one.as_json() for one in health.of_receiver(view, its_source)]}
