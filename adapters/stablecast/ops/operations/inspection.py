"""Report the clients, repositories and segments of a directory, for `stablecast store inspect`."""

from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.ops.monitor import figures
from stablecast.ops.operations.directory_contents import Contents, read

SHOWN = 4
"""Most receivers of a source whose progress is printed."""
Report = dict[str, Any]
"""Record that is printed as JSON."""


def inspect(directory: Path) -> Report:
    """Return everything but the messages. Raises like `directory_contents.read`, and RecordError."""
    found = read(directory)
    clients = found.clients
    readers: dict[int, list[Client]] = {}
    for client in clients.values():
        if client.role is Role.RECEIVER:
            readers.setdefault(client.source_reg_id, []).append(client)
    return {
        "directory": str(directory),
        "segments": [_segment(found, number) for number in found.segments],
        "records": dict(found.records),
        "torn_bytes": found.torn,
        "damages": len(found.damages),
        "set_aside": found.set_aside,
        "sources": [_source(found, client, readers.get(client.reg_id, [])) for client in found.sources()],
    }


def _segment(found: Contents, number: int) -> Report:
    segment = found.segments[number]
    return {
        "number": number,
        "version": segment.version,
        "bytes": segment.end,
        "live": segment.live,
        "sources": len(segment.streams),
    }


def _source(found: Contents, client: Client, readers: list[Client]) -> Report:
    held = list(found.index.sizes(client.reg_id))
    trail = found.index.trails.get(client.reg_id)
    stops = [first + count for first, count, _ in held]
    return {
        "reg_id": client.reg_id,
        "topic": client.topic,
        "session_id": client.session_id,
        "incarnation": client.incarnation,
        "address": client.reply_to,
        "paced": bool(client.pace),
        "messages": sum(count for _, count, _ in held),
        "bytes": sum(size for _, _, size in held),
        "first": held[0][0] if held else None,
        "last": stops[-1] - 1 if held else None,
        "trail": None if trail is None else trail.stop,
        "holes": sum(1 for stop, (first, _, _) in zip(stops, held[1:], strict=False) if stop < first),
        "receivers": [_receiver(reader) for reader in sorted(readers, key=lambda one: one.reg_id)],
    }


def _receiver(client: Client) -> Report:
    return {
        "reg_id": client.reg_id,
        "session_id": client.session_id,
        "address": client.reply_to,
        "acknowledged": client.acknowledged if client.has_acknowledged else None,
        "needs_from": client.acknowledged + 1,
    }


def tables(report: Report) -> list[Table]:
    files = Table("segment", "version", "bytes", "live runs", "sources", box=SIMPLE_HEAD, pad_edge=False)
    files.title, files.title_justify = report["directory"], "left"
    for one in report["segments"]:
        size = figures.size(one["bytes"])
        files.add_row(f"{one['number']:08}", str(one["version"]), size, str(one["live"]), str(one["sources"]))
    held = _sources_table()
    for one in report["sources"]:
        numbers = "" if one["first"] is None else f"{one['first']}..{one['last']}"
        columns = (figures.count(one["messages"]), figures.size(one["bytes"]), numbers, str(one["holes"]))
        needs = _needs([reader["needs_from"] for reader in one["receivers"]])
        held.add_row(str(one["reg_id"]), one["topic"], str(one["session_id"]), *columns, needs)
    return [files, held]


def running_tables(store: Report, sources: list[Report]) -> list[Table]:
    about = Table("store", "address", "state", "directory", box=SIMPLE_HEAD)
    about.add_row(store["name"], store["address"], store["level"], store["cache_directory"])
    held = _sources_table()
    for one in sources:
        trail, _, lead = one["window"]
        numbers = f"{trail}..{lead}" if one["messages"] else ""
        columns = (figures.count(one["messages"]), figures.size(one["memory"][0]), numbers, str(one["holes"]))
        needs = _needs([reader["acknowledged"] + 1 for reader in one["receivers"]])
        held.add_row(str(one["reg_id"]), one["topic"], str(one["session_id"]), *columns, needs)
    return [about, held]


def _sources_table() -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    # A RegID is never truncated, because the other commands need all of it.
    table.add_column("source", no_wrap=True, min_width=10)
    table.add_column("topic", overflow="fold")
    table.add_column("session", overflow="fold", min_width=7)
    for name in ("messages", "bytes", "numbers", "holes"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("needed from", overflow="fold")
    return table


def _needs(numbers: list[int]) -> str:
    """Return the lowest numbers; a store may have thousands of receivers."""
    first = ", ".join(map(str, sorted(numbers)[:SHOWN]))
    return f"{first} and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else first
