"""`make bench`: measure stablecast next to a baseline in the same run.

The systems of a scenario take turns, so that a busy machine slows down all of them. Compare the ratios.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from stablecast.text.console import printer
from tools.bench import command_line, core_costs, peers, report
from tools.bench.bounded_memory import bounded
from tools.bench.disk import disk
from tools.bench.latency import latency
from tools.bench.memory import memory
from tools.bench.process_cleanup import reaped
from tools.bench.recovery import recovery
from tools.bench.restart import restart
from tools.bench.routers import routers
from tools.bench.scenario import Figures, Options, Outcome, Scenario, Spread
from tools.bench.sources import sources
from tools.bench.startup import startup
from tools.bench.throughput import flushes, quorum, throughput
from tools.bench.transports import transports

SCENARIOS = {
    make(Options()).name: make
    for make in (
        throughput,
        quorum,
        latency,
        recovery,
        disk,
        flushes,
        startup,
        memory,
        restart,
        sources,
        transports,
        bounded,
        routers,
    )
}
COST_REPEATS = 5
"""Number of measurements of each cost."""


def measure(scenario: Scenario, options: Options, progress: Callable[[str], None]) -> Outcome:
    """Run all rounds of a scenario, its systems in turn."""
    rounds: dict[str, list[Figures]] = {name: [] for name in scenario.systems}
    for number in range(options.rounds):
        for name, system in scenario.systems.items():
            progress(f"{scenario.name}, round {number + 1} of {options.rounds}: {name}")
            place = Path(options.directory or tempfile.gettempdir())
            with tempfile.TemporaryDirectory(dir=place) as folder:
                rounds[name].append(system(options, Path(folder)))
    return Outcome(scenario, rounds)


def costs(options: Options) -> dict[str, Spread]:
    """Measure the processor time of the core's machines, in microseconds per message."""
    runs = max(1, options.messages // core_costs.RUN_MESSAGES)
    return {name: Spread.of([cost(runs) for _ in range(COST_REPEATS)]) for name, cost in core_costs.COSTS.items()}


def perform(asked: command_line.Request) -> None:
    """Measure each scenario, then the core and the peers; print and save the results after each."""
    options, outcomes, document = asked.options, list[Outcome](), dict[str, object]()

    def keep(core: Mapping[str, Spread], **others: object) -> None:
        nonlocal document
        document = {"asked": asked.as_json(), **report.as_json(options, outcomes, core), **others}
        asked.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    console, tables = Console(stderr=True), None if asked.to_machine else printer()
    if tables is not None:
        report.head(tables, options)
    with console.status("") as status:

        def show(picture: Callable[[Console], None]) -> None:
            if tables is not None:
                status.stop()  # otherwise the table is printed into the status line
                picture(tables)
                status.start()

        for name in asked.scenarios:
            outcome = measure(SCENARIOS[name](options), options, status.update)
            outcomes.append(outcome)
            show(partial(report.show, outcome=outcome))
            keep({}, complete=False)
        core = costs(options) if asked.whole else {}
        if core:
            show(partial(report.show_costs, costs=core))
        others = {}
        if asked.harness is not None:
            keep(core, complete=False)
            status.update("peers")
            found = peers.measured(asked.harness, asked.python, options, asked.only)
            judged = peers.verdicts(found, outcomes, options.size)
            others = {"peers": peers.as_json(found, judged)}
            show(partial(peers.show, peers=found, judged=judged))
        keep(core, complete=True, **others)
    if asked.to_machine:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    asked = command_line.parse(arguments, list(SCENARIOS), (__doc__ or "").partition("\n")[0])
    with command_line.short_errors("make bench"):
        perform(asked)


if __name__ == "__main__":
    with reaped():
        main()
