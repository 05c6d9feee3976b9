"""Reports of the results, for people and for machines."""

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from stablecast.text import plural
from tools.bench.scenario import Options, Outcome, Spread

PACKAGES = ("stablecast", "uvloop", "attrs")


def head(console: Console, options: Options) -> None:
    console.print(
        f"{options.messages:,} messages of {options.size} B, flight {options.flight:,}, "
        f"{plural(options.rounds, 'round')}"
    )


def show(console: Console, outcome: Outcome) -> None:
    """Print a table with the median, the lowest and the highest value of the rounds, and the goals."""
    console.print(_table(outcome))
    for goal in outcome.scenario.goals:
        if (verdict := goal.verdict(outcome.rounds)) is not None:
            console.print(f"  {verdict.text()}")


def show_costs(console: Console, costs: Mapping[str, Spread]) -> None:
    """Print a table of the processor time of the core's machines."""
    table = Table("", "stablecast", title="core: CPU µs a message, in runs of 64", box=box.SIMPLE_HEAD)
    for label, cost in costs.items():
        table.add_row(label, cost.text())
    console.print(table)


def _table(outcome: Outcome) -> Table:
    scenario = outcome.scenario
    caption = "; ".join(filter(None, ("median (lowest–highest)", scenario.durability)))
    table = Table("", *outcome.rounds, title=f"{scenario.name}: {scenario.about}", caption=caption, box=box.SIMPLE_HEAD)
    for figure, label in scenario.figures.items():
        spreads = (outcome.spread(system, figure) for system in outcome.rounds)
        table.add_row(label, *("" if spread is None else spread.text() for spread in spreads))
        for over, under, measured in scenario.ratios:
            if measured == figure:
                ratio = outcome.ratio(over, under, figure).text()
                table.add_row(f"  / {under}", *(ratio if name == over else "" for name in outcome.rounds))
    return table


def as_json(options: Options, outcomes: Sequence[Outcome], costs: Mapping[str, Spread]) -> dict[str, object]:
    """Return the results for machines, with the machine and the versions."""
    return {
        "messages": options.messages,
        "size": options.size,
        "flight": options.flight,
        "rounds": options.rounds,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "scenarios": {outcome.scenario.name: outcome.as_json() for outcome in outcomes},
        "core_us_per_message": {name: attrs.asdict(cost) for name, cost in costs.items()},
    }
