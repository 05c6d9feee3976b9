"""What `stablecast store inspect|scrub|export|evict|drain` and `stablecast top` do; see `storage` for their options."""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rich.live import Live

from stablecast.ops.operations import directory_changes, inspection, monitor_client
from stablecast.ops.operations import export as exporting
from stablecast.ops.operations import scrub as scrubbing
from stablecast.ops.operations.store_warnings import troubles
from stablecast.ops.operations.target import OperationError, Remote, place
from stablecast.ops.operations.top import ORDERS, Top
from stablecast.text import plural
from stablecast.text.console import note, printer, say

DAMAGED = 1
"""Exit status of a scrub that found damage."""
POLL_SECONDS = 1.0
"""From one look at a running store to the next."""


def inspect(where: str, token: Path | None, as_json: bool) -> int:
    """Show what is there; returns the exit status."""
    at = place(where)
    if isinstance(at, Remote):
        client = _client(at, token)
        report: dict[str, Any] = {"store": client.store(), "sources": list(client.all_sources())}
    else:
        report = inspection.inspect(at)
    if as_json:
        say(report)
        return 0
    console = printer()
    running = isinstance(at, Remote)
    for table in inspection.running_tables(**report) if running else inspection.tables(report):
        console.print(table)
    for level, text in troubles(**report) if running else ():
        say(f"{level.lower()}: {text}")
    return 0


def scrub(where: str, token: Path | None, as_json: bool) -> int:
    """Verify checksums; returns the exit status."""
    at = place(where)
    report = _client(at, token).scrub() if isinstance(at, Remote) else scrubbing.scrub(at)
    if as_json:
        say(report)
    else:
        for sentence in scrubbing.sentences(report):
            say(sentence)
    return 0 if report["clean"] else DAMAGED


def export(where: str, output: str, given: dict[str, Any], token: Path | None) -> int:
    """Write messages; returns the exit status."""
    at = place(where)
    times: dict[str, Any] = {name: exporting.instant(given[name]) for name in ("since", "until") if name in given}
    wanted = exporting.Wanted(**{**given, **times})
    name = Path("-.jsonl.zst" if output == "-" else output)
    if isinstance(at, Remote):
        if not name.name.endswith(".jsonl.zst"):
            raise OperationError("a running store sends .jsonl.zst; export its directory for Parquet")
        with _opened(output) as file:
            _client(at, token).export({**given, **times}, file)
        return 0
    with _opened(output) as file:
        count = exporting.export(at, wanted, exporting.sink(name, file))
    note(plural(count, "message"))
    return 0


def evict(where: str, reg_id: int, before: int | None, yes: bool, token: Path | None, as_json: bool) -> int:
    """Forget a client, or let messages go; returns the exit status."""
    at = place(where)
    if not yes:
        raise OperationError("what is evicted cannot be had back from this store: say --yes if it is meant")
    if isinstance(at, Path):
        change = directory_changes.evict(reg_id) if before is None else directory_changes.evict_messages(reg_id, before)
        return _say_done(asyncio.run(directory_changes.change(at, change)), as_json)
    if before is not None:
        raise OperationError("messages of a running store are let go by its limits; stop it to evict some by hand")
    return _say_done({"done": _client(at, token).change("evict", reg_id=reg_id)}, as_json)


def drain(where: str, undo: bool, token: Path | None, as_json: bool) -> int:
    """Drain a store; returns the exit status."""
    at = place(where)
    if isinstance(at, Path):
        if undo:
            raise OperationError("only a running store can be told to take new clients again; name its monitor")
        return _say_done(asyncio.run(directory_changes.change(at, directory_changes.drain())), as_json)
    client = _client(at, token)
    if undo:
        return _say_done({"done": client.change("drain", on=0)}, as_json)

    def tell(left: dict[int, int]) -> None:
        behind = plural(max(left.values()), "message")
        text = f"{plural(len(left), 'source', 'has', 'have')} receivers that are up to {behind} behind"
        say({"remaining": left} if as_json else text)

    monitor_client.drained(client, lambda: time.sleep(POLL_SECONDS), tell)
    return _say_done({"done": "Drained: every receiver has everything that is here"}, as_json)


def resume(where: str, token: Path | None, as_json: bool) -> int:
    """Start a parked store again; returns the exit status."""
    at = place(where)
    if not isinstance(at, Remote):
        raise OperationError("a store is started again by its daemon: name the monitor, http://ip:port/stores/N")
    return _say_done({"done": _client(at, token).change("resume")}, as_json)


def top(where: str, order: str, rows: int, once: bool, token: Path | None) -> int:
    """Show a running store until interrupted; returns the exit status."""
    at = place(where)
    if not isinstance(at, Remote):
        raise OperationError("top looks at a running store: name its monitor, http://ip:port")
    if order not in ORDERS:
        raise OperationError(f"'{order}' is no order; choose one of {', '.join(ORDERS)}")
    shown = Top(_client(at, token), order, rows)
    if once:
        printer().print(shown.look())
        return 0
    with Live(shown.look(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(POLL_SECONDS)
            live.update(shown.look(), refresh=True)


def _client(at: Remote, token: Path | None) -> monitor_client.Client:
    return monitor_client.Client(at, monitor_client.token_of(token))


def _say_done(done: dict[str, Any], as_json: bool) -> int:
    if as_json:
        say(done)
    else:
        for name, value in done.items():
            say(str(value) if name == "done" else f"{name.replace('_', ' ')}: {value}")
    return 0


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    """A new file, which is removed if it cannot be finished; `-` is standard output. Raises OSError."""
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
