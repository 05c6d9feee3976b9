"""`make bench`: messages per second delivered and stable, next to a baseline without the protocol.

One source, one receiver and one disk store, three processes on loopback. The two systems take turns, so that a machine
that is busy with other things slows down both; look at the ratio, not at the rates. *Stable* means that `fdatasync` has
returned at the store.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench import bookkeeping, pipeline, raw
from tests.bench.roles import Role, Work, run

DURABILITY = "stable = fdatasync returned"
BASELINE, SYSTEM, TRACED = "baseline", "stablecast", "traced"
PACKAGES = ("stablecast", "uvloop", "attrs")
RATES = {"stable_per_s": "stable", "delivered_per_s": "delivered"}
COST_REPEATS = 5

Figures = dict[str, float]


@attrs.frozen
class Spread:
    """The middle of several measurements and how far they lie apart."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self, form: str) -> str:
        """For a table."""
        return f"{self.median:{form}} ({self.low:{form}}–{self.high:{form}})"


def measure(options: argparse.Namespace, progress: Callable[[str], None]) -> dict[str, list[Figures]]:
    """The figures of each round, by system."""
    systems: dict[str, Mapping[str, Role]] = {BASELINE: raw.ROLES, SYSTEM: pipeline.ROLES}
    if options.trace:
        systems[TRACED] = pipeline.ROLES
    rounds: dict[str, list[Figures]] = {name: [] for name in systems}
    for number in range(options.rounds):
        for name, roles in systems.items():
            progress(f"round {number + 1} of {options.rounds}: {name}")
            rounds[name].append(_round(roles, options, traced=name == TRACED))
    return rounds


def _round(roles: Mapping[str, Role], options: argparse.Namespace, *, traced: bool) -> Figures:
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        directory = Path(folder)
        trace = directory / "trace" if traced else None
        found = run(roles, Work(options.messages, options.size, options.flight, directory, trace))
    figures = {"stable_per_s": found["source"]["per_s"], "delivered_per_s": found["receiver"]["per_s"]}
    figures |= {f"{name}_cpu_us": role["cpu_us"] for name, role in found.items()}
    figures["recovered"] = found["receiver"].get("recovered", 0)
    return figures


def ratios(rounds: Mapping[str, list[Figures]], figure: str) -> dict[str, Spread]:
    """How each system but the first compares to the one before it, in the same round."""
    return {
        f"{name} / {base}": Spread.of([one[figure] / other[figure] for one, other in zip(ours, theirs, strict=True)])
        for (base, theirs), (name, ours) in pairwise(rounds.items())
    }


def costs(runs: int) -> dict[str, Spread]:
    """Microseconds per message of the core's bookkeeping."""
    return {name: Spread.of([cost(runs) for _ in range(COST_REPEATS)]) for name, cost in bookkeeping.COSTS.items()}


def show(
    console: Console, options: argparse.Namespace, rounds: dict[str, list[Figures]], core: dict[str, Spread]
) -> None:
    """The tables for people."""
    title = f"{options.messages:,} messages of {options.size} B, flight {options.flight:,}, {options.rounds} rounds"
    table = Table("", *rounds, title=title, caption=f"median (lowest–highest); {DURABILITY}", box=box.SIMPLE_HEAD)
    for figure, label in RATES.items():
        values = (Spread.of([found[figure] / 1e3 for found in figures]) for figures in rounds.values())
        table.add_row(f"{label}, 1000/s", *(spread.text(",.0f") for spread in values))
        table.add_row("  / one before", "", *(spread.text(".2f") for spread in ratios(rounds, figure).values()))
    for role in raw.ROLES:
        values = (Spread.of([found[f"{role}_cpu_us"] for found in figures]) for figures in rounds.values())
        table.add_row(f"CPU µs, {role}", *(spread.text(".2f") for spread in values))
    for label, cost in core.items():
        table.add_row(f"core µs, {label}", "", cost.text(".2f"))
    console.print(table)


def report(options: argparse.Namespace, rounds: dict[str, list[Figures]], core: dict[str, Spread]) -> dict[str, object]:
    """Everything, for machines."""
    return {
        "messages": options.messages,
        "size": options.size,
        "flight": options.flight,
        "durability": DURABILITY,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "rounds": rounds,
        "ratios": {
            figure: {pair: attrs.asdict(spread) for pair, spread in ratios(rounds, figure).items()} for figure in RATES
        },
        "core_us_per_message": {name: attrs.asdict(cost) for name, cost in core.items()},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the results down."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=500_000, help="in each run")
    parser.add_argument("--size", type=int, default=100, help="bytes of a payload")
    parser.add_argument("--flight", type=int, default=20_000, help="ume_flight_size")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trace", action="store_true", help="measure with traces as well")
    parser.add_argument("--directory", type=Path, help="where the disk to measure is; the temporary folder by default")
    parser.add_argument("--output", type=Path, default=Path("bench.json"), help="the results for machines")
    parser.add_argument("--json", action="store_true", help="print these rather than tables")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    with console.status("") as status:
        rounds = measure(options, status.update)
        core = costs(max(1, options.messages // bookkeeping.RUN_MESSAGES))
    results = json.dumps(report(options, rounds, core), indent=2)
    options.output.write_text(results + "\n", encoding="utf-8")
    if options.json:
        sys.stdout.write(results + "\n")
    else:
        show(Console(), options, rounds, core)


if __name__ == "__main__":
    main()
