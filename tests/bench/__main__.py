"""`make bench`: figures of stablecast, each next to a limit that was measured in the same run.

Systems take turns, so that a machine that is busy with other things slows down all of them: look at the ratios.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from stablecast.cli.common import printer
from tests.bench import bookkeeping, peers, report
from tests.bench.bounded import bounded
from tests.bench.disk import disk
from tests.bench.latency import latency
from tests.bench.memory import memory
from tests.bench.reaper import reaped
from tests.bench.recovery import recovery
from tests.bench.restart import restart
from tests.bench.scenario import Figures, Options, Outcome, Scenario, Spread
from tests.bench.sources import sources
from tests.bench.starting import starting
from tests.bench.throughput import flushes, quorum, throughput
from tests.bench.transports import transports

SCENARIOS = {
    make(Options()).name: make
    for make in (
        throughput,
        quorum,
        latency,
        recovery,
        disk,
        flushes,
        starting,
        memory,
        restart,
        sources,
        transports,
        bounded,
    )
}
COST_REPEATS = 5
"""Measurements of each cost, of which the spread is shown."""

FAST = {"messages": 100_000, "rounds": 1}
"""For a look: all scenarios in a few minutes."""


def measure(scenario: Scenario, options: Options, progress: Callable[[str], None]) -> Outcome:
    """All rounds of a scenario, its systems in turn."""
    rounds: dict[str, list[Figures]] = {name: [] for name in scenario.systems}
    for number in range(options.rounds):
        for name, system in scenario.systems.items():
            progress(f"{scenario.name}, round {number + 1} of {options.rounds}: {name}")
            with tempfile.TemporaryDirectory(dir=options.directory) as folder:
                rounds[name].append(system(options, Path(folder)))
    return Outcome(scenario, rounds)


def costs(options: Options) -> dict[str, Spread]:
    """Microseconds per message of the core's bookkeeping."""
    runs = max(1, options.messages // bookkeeping.RUN_MESSAGES)
    return {name: Spread.of([cost(runs) for _ in range(COST_REPEATS)]) for name, cost in bookkeeping.COSTS.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the results down."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"default: all of {', '.join(SCENARIOS)}")
    parser.add_argument("--messages", type=int, default=500_000, help="in each run")
    parser.add_argument("--size", type=int, default=100, help="bytes of a payload")
    parser.add_argument("--flight", type=int, default=20_000, help="ume_flight_size")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fast", action="store_true", help="one round, fewer messages: a few minutes for all")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="measure other systems too, with the harness in DIR")
    parser.add_argument("--peers-python", default=sys.executable, help="an interpreter that has their clients")
    parser.add_argument("--peers-only", default="", metavar="TEXT", help="only those of them whose name contains this")
    parser.add_argument("--trace", action="store_true", help="measure with traces as well")
    parser.add_argument("--directory", type=Path, help="where the disk to measure is; the temporary folder by default")
    parser.add_argument("--output", type=Path, default=Path("bench.json"), help="the results for machines")
    parser.add_argument("--json", action="store_true", help="print these rather than tables")
    given = vars(parser.parse_args(arguments))
    names, output, to_machine = given.pop("scenarios"), given.pop("output"), given.pop("json")
    harness, python, only = given.pop("peers"), given.pop("peers_python"), given.pop("peers_only")
    given |= FAST if given.pop("fast") else {}
    if unknown := set(names) - set(SCENARIOS):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}: choose of {', '.join(SCENARIOS)}")
    options = Options(**given)
    console = Console(stderr=True)
    with console.status("") as status:
        chosen = [SCENARIOS[name](options) for name in names or SCENARIOS]
        outcomes = [measure(scenario, options, status.update) for scenario in chosen]
        core = {} if names else costs(options)
        status.update("peers")
        others = None if harness is None else peers.measured(harness, python, options, only)
    judged = [] if others is None else peers.verdicts(others, outcomes, options.size)
    document = report.as_json(options, outcomes, core)
    results = json.dumps(document | ({} if others is None else {"peers": peers.as_json(others, judged)}), indent=2)
    output.write_text(results + "\n", encoding="utf-8")
    if to_machine:
        sys.stdout.write(results + "\n")
    else:
        console = printer()
        report.show(console, options, outcomes, core)
        if others is not None:
            peers.show(console, others, judged)


if __name__ == "__main__":
    with reaped():
        main()
