"""Other messaging systems for Python, measured in the same run by a separate harness.

The harness is a folder outside this project. `run_all.py` in it, or in its folder `peers`, starts each system and
writes the results as JSON. `raw_parallel.py` is a data path without a protocol, as our baseline is. A system that is
not installed becomes a row with the reason. `verdicts` judges our goals against the peers, if the scenarios
`throughput` and `latency` were measured in the same run.
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

from tools.bench import latency, throughput
from tools.bench.goals import Verdict
from tools.bench.roles import BenchError
from tools.bench.scenario import Options, Outcome, Spread, digits

DEADLINE_S: Final = 1_800
"""Time limit of a harness."""

RAW: Final = "raw_parallel.py"
SYNCED: Final = "fdatasync returned"
FLUSHED: Final = "fsynced"
"""Prefix of the harness's description of an acknowledgement that comes after a flush."""

DELAYED: Final = "delayed"
UNKEPT: Final = "none"
"""Description of a system that acknowledges and stores nothing."""

OF_RAW: Final = 0.5
OF_FLUSHED: Final = 10.0
SMALL: Final = 100
OF_OTHERS: Final = {True: 3.0, False: 2.0}
"""Goal of throughput relative to other peers: for small messages (True) and for larger ones (False)."""


@attrs.frozen
class Peers:
    """The rows of the harness, and the versions of the measured systems."""

    rows: Sequence[Mapping[str, Any]]
    versions: Mapping[str, str]


def measured(directory: Path, python: str, options: Options, only: str = "") -> Peers:
    """Run a harness with the interpreter that has the peers' clients. `only` is a part of the systems' names.

    Raises:
        BenchError: If there is no harness, or it failed.
    """
    places = [place for place in (directory, directory / "peers") if (place / "run_all.py").is_file()]
    if not places:
        raise BenchError(f"{directory} has no run_all.py: name the folder of a harness of peers")
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
        text = getattr(error, "stderr", None) or str(error)
        raise BenchError(f"{directory / arguments[0]} failed: {text.strip().splitlines()[-1]}") from None
    return done.stdout


def verdicts(peers: Peers, outcomes: Sequence[Outcome], size: int) -> list[Verdict]:
    """Judge our goals against the peers, as far as both sides were measured."""
    by_name = {outcome.scenario.name: outcome for outcome in outcomes}
    found: list[Verdict] = []
    if (ours := by_name.get("throughput")) is not None and (rate := ours.spread(throughput.SYSTEM, "stable")):
        found += _rates(peers.rows, rate, size)
    if (ours := by_name.get("latency")) is not None:
        found += _latencies(peers.rows, ours)
    return found


def _rates(rows: Sequence[Mapping[str, Any]], ours: Spread, size: int) -> list[Verdict]:
    """Compare throughput with the best of each kind: raw, acknowledged after a flush, acknowledged otherwise."""
    found = []
    kinds = (
        ("raw_parallel.py", OF_RAW, lambda row: row["acks"] == SYNCED),
        ("the best peer that acknowledges after a flush", OF_FLUSHED, _flushed),
        ("the best other peer", OF_OTHERS[size <= SMALL], lambda row: _kept(row) and not _flushed(row)),
    )
    for name, limit, chosen in kinds:
        rates = [
            min(row["acked_per_s"], row["delivered_per_s"]) for row in rows if "acked_per_s" in row and chosen(row)
        ]
        if rates:
            best = max(rates) / 1e3
            ratio = Spread(ours.median / best, ours.low / best, ours.high / best)
            found.append(Verdict(f"throughput / {name}", ratio, limit, least=True))
    return found


def _latencies(rows: Sequence[Mapping[str, Any]], ours: Outcome) -> list[Verdict]:
    """Compare delivery with the fastest peer that stores its messages."""
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
            found.append(Verdict(f"delivery, {figure[-3:]} / the fastest persistent peer", ratio, 1.0, least=False))
    return found


def _kept(row: Mapping[str, Any]) -> bool:
    return row["acks"] not in (SYNCED, UNKEPT)


def _flushed(row: Mapping[str, Any]) -> bool:
    return _kept(row) and row["acks"].startswith(FLUSHED) and DELAYED not in row["acks"]


def show(console: Console, peers: Peers, judged: Sequence[Verdict]) -> None:
    table = Table(title="peers, as measured by their harness", box=box.SIMPLE_HEAD)
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
    goals = [verdict.as_json() for verdict in judged]
    return {"rows": list(peers.rows), "versions": dict(peers.versions), "goals": goals}
