"""What a Python user would pick instead, measured by a harness of its own in the same run.

The harness is a folder that somebody else keeps: `run_all.py` in it, or in its folder `peers`, starts each system and
writes what it measured as JSON; `raw_parallel.py` is a data path with the protocol left out, as our baseline is. What
is not installed becomes a row that says so.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.roles import BenchError
from tests.bench.scenario import Options, digits

DEADLINE_S: Final = 1_800
"""A harness that takes longer is stopped."""

RAW: Final = "raw_parallel.py"
SYNCED: Final = "fdatasync returned"


@attrs.frozen
class Peers:
    """Rows as the harness wrote them, and the versions of what was measured."""

    rows: Sequence[Mapping[str, Any]]
    versions: Mapping[str, str]


def measured(directory: Path, python: str, options: Options) -> Peers:
    """Run the harness of `directory` with the interpreter that has the peers' clients.

    Raises:
        BenchError: there is no harness, or it failed.
    """
    places = [place for place in (directory, directory / "peers") if (place / "run_all.py").is_file()]
    if not places:
        raise BenchError(f"there is no run_all.py in {directory}; name the folder of a harness of peers")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "peers.json")
        _run(places[0], python, "run_all.py", "--quick", "--sizes", str(options.size), "--out", str(output))
        found = json.loads(output.read_text(encoding="utf-8"))
    return Peers([*_raw(directory, python, options), *found["peers"]], found["meta"]["versions"])


def _raw(directory: Path, python: str, options: Options) -> list[dict[str, Any]]:
    if not (directory / RAW).is_file():
        return []
    given = {"--messages": options.messages, "--size": options.size, "--flight": options.flight}
    figures = json.loads(
        _run(directory, python, RAW, "--json", *(str(part) for pair in given.items() for part in pair))
    )
    row = {"system": RAW, "acks": SYNCED, "kind": "throughput", "mode": "blocks", "size": options.size}
    return [row | {"acked_per_s": figures["stable_per_s"], "delivered_per_s": figures["delivered_per_s"]}]


def _run(directory: Path, python: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [python, *arguments], cwd=directory, capture_output=True, text=True, timeout=DEADLINE_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        told = getattr(error, "stderr", None) or str(error)
        raise BenchError(f"{directory / arguments[0]} failed: {told.strip().splitlines()[-1]}") from None
    return done.stdout


def show(console: Console, peers: Peers) -> None:
    """A table."""
    table = Table(title="peers, as their harness found them", box=box.SIMPLE_HEAD)
    for column in ("system", "acknowledged means", "mode", "acked/s", "delivered/s", "delivery p50 µs", "p99 µs"):
        table.add_column(column, overflow="fold")
    for row in peers.rows:
        if "error" in row:
            table.add_row(row["system"], "not measured: " + str(row["error"]).strip().splitlines()[-1])
            continue
        delivery = row.get("from_call") or {}
        figures = [row.get("acked_per_s"), row.get("delivered_per_s"), delivery.get("p50_us"), delivery.get("p99_us")]
        table.add_row(row["system"], row["acks"], row["mode"], *("" if n is None else digits(n) for n in figures))
    console.print(table)


def as_json(peers: Peers) -> dict[str, object]:
    """Everything, for machines."""
    return {"rows": list(peers.rows), "versions": dict(peers.versions)}
