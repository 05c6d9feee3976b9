"""Implement the commands of `stablecast store` for a directory or a running store, and `stablecast top`.

Each function prints its result and returns the exit status.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rich.live import Live

from stablecast.ops.operations import declarations, directory_changes, downgrade, inspection, monitor_client
from stablecast.ops.operations import export as exporting
from stablecast.ops.operations import scrub as scrubbing
from stablecast.ops.operations.partitioned_export import PartitionedParquet
from stablecast.ops.operations.target import OperationError, Remote, place
from stablecast.ops.operations.top import ORDERS, Top, warnings_of
from stablecast.text import plural
from stablecast.text.console import note, printer, say, show

DAMAGED = 1
"""Exit status of a scrub that found damage."""
POLL_SECONDS = 1.0
"""Seconds between two requests to a running store."""


def inspect(where: str, token: Path | None, as_json: bool) -> int:
    """Print clients, repositories and findings of a store."""
    at = place(where)
    if isinstance(at, Remote):
        client = _client(at, token)
        report: dict[str, Any] = {"store": client.store(), "sources": list(client.all_sources())}
        tables, warnings = inspection.running_tables(**report), warnings_of(**report)
    else:
        report = inspection.inspect(at)
        tables, warnings = inspection.tables(report), []
    if as_json:
        say(report)
        return 0
    console = printer()
    for table in tables:
        console.print(table)
    for level, text in warnings:
        say(f"{level.lower()}: {text}")
    return 0


def scrub(where: str, token: Path | None, as_json: bool) -> int:
    """Verify checksums; return `DAMAGED` if one is wrong."""
    at = place(where)
    report = _client(at, token).scrub() if isinstance(at, Remote) else scrubbing.scrub(at)
    show(report, scrubbing.sentences(report), as_json)
    return 0 if report["clean"] else DAMAGED


def declare(what: str, directory: Path, as_json: bool) -> int:
    """Declare a restored copy, or a new disk, of a store that does not run."""
    report = asyncio.run(declarations.restore(directory) if what == "restore" else declarations.replace(directory))
    expected = declarations.recovery(directory)
    show({**report, "next_start": expected["next_start"]}, declarations.sentences(expected), as_json)
    return 0


def recover(where: str, token: Path | None, as_json: bool) -> int:
    """Report what a store knows and lost, and what its next start does, or what a running one lacks."""
    at = place(where)
    if isinstance(at, Remote):
        client = _client(at, token)
        report = declarations.progress(client.store(), list(client.all_sources()))
        show(report, declarations.progress_sentences(report), as_json)
    else:
        report = declarations.recovery(at)
        show(report, declarations.sentences(report), as_json)
    return 0


def downgrade_check(directory: Path, to: str | None, as_json: bool) -> int:
    """Report the oldest release that reads a directory; fail if the wanted one does not."""
    report = downgrade.releases(directory)
    if to is not None and not downgrade.reads(report, to):
        newest = report["newest_format"]
        raise OperationError(
            f"release {to} does not read {directory}, which has format {newest}; keep release "
            f"{report['oldest_release']} or newer here, or go back to a copy from before the upgrade"
        )
    show(report, downgrade.sentences(report), as_json)
    return 0


def export(where: str, output: str, given: dict[str, Any], token: Path | None) -> int:
    """Write the selected messages to a file."""
    at = place(where)
    times: dict[str, Any] = {name: exporting.instant(given[name]) for name in ("since", "until") if name in given}
    wanted = exporting.MessageSelection(**{**given, **times})
    name = Path("-.jsonl.zst" if output == "-" else output)
    if isinstance(at, Remote):
        if not name.name.endswith(".jsonl.zst"):
            raise OperationError("a running store sends .jsonl.zst; export its directory for Parquet")
        with _opened(output) as file:
            _client(at, token).export({**given, **times}, file)
        return 0
    if output.endswith("/"):
        folder = PartitionedParquet(Path(output))
        note(plural(exporting.export(at, wanted, folder), "message"))
        folder.finish()
        return 0
    with _opened(output) as file:
        count = exporting.export(at, wanted, exporting.sink(name, file))
    note(plural(count, "message"))
    return 0


def evict(where: str, reg_id: int, before: int | None, yes: bool, token: Path | None, as_json: bool) -> int:
    """Remove a client, or the messages below a number."""
    at = place(where)
    if not yes:
        raise OperationError("eviction cannot be undone on this store: confirm it with --yes")
    if isinstance(at, Path):
        change = directory_changes.evict(reg_id) if before is None else directory_changes.evict_messages(reg_id, before)
        return _say_done(asyncio.run(directory_changes.change(at, change)), as_json)
    if before is not None:
        raise OperationError("a running store deletes messages by its limits only: stop it to delete messages by hand")
    return _say_done({"done": _client(at, token).change("evict", reg_id=reg_id)}, as_json)


def drain(where: str, undo: bool, token: Path | None, as_json: bool) -> int:
    """Drain a store, and wait until a running one has nothing left to send."""
    at = place(where)
    if isinstance(at, Path):
        if undo:
            raise OperationError(
                "only a running store can accept clients again: name its monitor, http://ip:port/stores/N"
            )
        return _say_done(asyncio.run(directory_changes.change(at, directory_changes.drain())), as_json)
    client = _client(at, token)
    if undo:
        return _say_done({"done": client.change("drain", on=0)}, as_json)

    def report(left: dict[int, int]) -> None:
        behind = plural(max(left.values()), "message")
        text = f"{plural(len(left), 'source', 'has', 'have')} receivers up to {behind} behind"
        say({"remaining": left} if as_json else text)

    monitor_client.drained(client, lambda: time.sleep(POLL_SECONDS), report)
    return _say_done({"done": "Drained: every receiver has acknowledged every message"}, as_json)


def resume(where: str, token: Path | None, as_json: bool) -> int:
    """Restart a store that is parked."""
    at = place(where)
    if not isinstance(at, Remote):
        raise OperationError("only a daemon can restart its store: name its monitor, http://ip:port/stores/N")
    return _say_done({"done": _client(at, token).change("resume")}, as_json)


def top(where: str, order: str, rows: int, once: bool, token: Path | None) -> int:
    """Show a running store until interrupted, or once."""
    at = place(where)
    if not isinstance(at, Remote):
        raise OperationError("top shows a running store: name its monitor, http://ip:port")
    if order not in ORDERS:
        raise OperationError(f"'{order}' is no order; choose one of {', '.join(ORDERS)}")
    shown = Top(_client(at, token), order, rows)
    if once:
        printer().print(shown.render())
        return 0
    with Live(shown.render(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(POLL_SECONDS)
            live.update(shown.render(), refresh=True)


def _client(at: Remote, token: Path | None) -> monitor_client.MonitorClient:
    return monitor_client.MonitorClient(at, monitor_client.token_of(token))


def _say_done(done: dict[str, Any], as_json: bool) -> int:
    lines = (str(value) if name == "done" else f"{name.replace('_', ' ')}: {value}" for name, value in done.items())
    show(done, lines, as_json)
    return 0


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    """Open a new file, and remove it if the caller fails; `-` is standard output. Raises OSError."""
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    with path.open("xb") as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise
