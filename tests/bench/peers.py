"""What a Python user would pick instead, measured by a harness of its own in the same run.

The harness is a folder that somebody else keeps: `run_all.py` in it, or in its folder `peers`, starts each system and
writes what it measured as JSON; `raw_parallel.py` is a data path with the protocol left out, as our baseline is. What
is not installed becomes a row that says so. What is to be shown beside them is judged at the end (`verdicts`), as far
as the scenarios `throughput` and `latency` were measured in the same run.
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

from tests.bench import latency, throughput
from tests.bench.goals import Verdict
from tests.bench.roles import BenchError
from tests.bench.scenario import Options, Outcome, Spread, digits

DEADLINE_S: Final = 1_800
"""A harness that takes longer is stopped."""

RAW: Final = "raw_parallel.py"
SYNCED: Final = "fdatasync returned"
FLUSHED: Final = "fsynced"
"""How the words begin with which the harness says that an acknowledgement comes after a flush."""

DELAYED: Final = "delayed"
UNKEPT: Final = "none"
"""Nothing is acknowledged, or kept."""

OF_RAW: Final = 0.5
OF_FLUSHED: Final = 10.0
SMALL: Final = 100
OF_OTHERS: Final = {True: 3.0, False: 2.0}
"""What throughput is to be at least, to that of the others: of small messages and of larger ones."""


@attrs.frozen
class Peers:
    """Rows as the harness wrote them, and the versions of what was measured."""

    rows: Sequence[Mapping[str, Any]]
    versions: Mapping[str, str]


def measured(directory: Path, python: str, options: Options, only: str = "") -> Peers:
    """Run the harness of `directory` with the interpreter that has the peers' clients; `only` systems so named.

    Raises:
        BenchError: there is no harness, or it failed.
    """
    places = [place for place in (directory, directory / "peers") if (place / "run_all.py").is_file()]
    if not places:
        raise BenchError(f"there is no run_all.py in {directory}; name the folder of a harness of peers")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "peers.json")
        chosen = ("--only", only) if only else ()
        _run(places[0], python, "run_all.py", "--quick", "--sizes", str(options.size), *chosen, "--out", str(output))
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


def verdicts(peers: Peers, outcomes: Sequence[Outcome], size: int) -> list[Verdict]:
    """What is to be shown beside them, as far as both sides were measured."""
    by_name = {outcome.scenario.name: outcome for outcome in outcomes}
    found: list[Verdict] = []
    if (ours := by_name.get("throughput")) is not None and (rate := ours.spread(throughput.SYSTEM, "stable")):
        found += _rates(peers.rows, rate, size)
    if (ours := by_name.get("latency")) is not None:
        found += _latencies(peers.rows, ours)
    return found


def _rates(rows: Sequence[Mapping[str, Any]], ours: Spread, size: int) -> list[Verdict]:
    """To the best of each kind: raw, flushed before it is acknowledged, acknowledged otherwise."""
    found = []
    kinds = (
        ("raw_parallel.py", OF_RAW, lambda row: row["acks"] == SYNCED),
        ("the best peer that acknowledges after a flush", OF_FLUSHED, _flushed),
        ("the best peer that does not", OF_OTHERS[size <= SMALL], lambda row: _kept(row) and not _flushed(row)),
    )
    for name, limit, chosen in kinds:
        rates = [
            min(row["acked_per_s"], row["delivered_per_s"]) for row in rows if "acked_per_s" in row and chosen(row)
        ]
        if rates:
            best = max(rates) / 1e3
            ratio = Spread(ours.median / best, ours.low / best, ours.high / best)
            found.append(Verdict(f"throughput to {name}", ratio, limit, least=True))
    return found


def _latencies(rows: Sequence[Mapping[str, Any]], ours: Outcome) -> list[Verdict]:
    """Delivery, to the quickest peer that keeps what it delivers."""
    found = []
    for theirs, figure in (("p50_us", "delivered_p50"), ("p99_us", "delivered_p99")):
        known = [
            row["from_call"][theirs]
            for row in rows
            if row.get("kind") == "latency" and _kept(row) and theirs in (row.get("from_call") or {})
        ]
        spread = ours.spread(latency.OURS, figure)
        if known and spread is not None:
            best = min(known)
            ratio = Spread(spread.median / best, spread.low / best, spread.high / best)
            found.append(Verdict(f"delivery, {figure[-3:]}, to the quickest persistent peer", ratio, 1.0, least=False))
    return found


def _kept(row: Mapping[str, Any]) -> bool:
    return row["acks"] not in (SYNCED, UNKEPT)


def _flushed(row: Mapping[str, Any]) -> bool:
    return _kept(row) and row["acks"].startswith(FLUSHED) and DELAYED not in row["acks"]


def show(console: Console, peers: Peers, judged: Sequence[Verdict]) -> None:
    """A table, and what is to be shown."""
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
    for verdict in judged:
        console.print(f"  {verdict.text()}")


def as_json(peers: Peers, judged: Sequence[Verdict]) -> dict[str, object]:
    """Everything, for machines."""
    goals = [verdict.as_json() for verdict in judged]
    return {"rows": list(peers.rows), "versions": dict(peers.versions), "goals": goals}
