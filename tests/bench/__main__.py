"""`make bench`: figures of stablecast, each next to a limit that was measured in the same run.

Systems take turns, so that a machine that is busy with other things slows down all of them: look at the ratios.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from stablecast.text.console import printer
from tests.bench import asking, bookkeeping, peers, report
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


def measure(scenario: Scenario, options: Options, progress: Callable[[str], None]) -> Outcome:
    """All rounds of a scenario, its systems in turn."""
    rounds: dict[str, list[Figures]] = {name: [] for name in scenario.systems}
    for number in range(options.rounds):
        for name, system in scenario.systems.items():
            progress(f"{scenario.name}, round {number + 1} of {options.rounds}: {name}")
            place = Path(options.directory or tempfile.gettempdir())
            with tempfile.TemporaryDirectory(dir=place) as folder, asking.room(place):
                rounds[name].append(system(options, Path(folder)))
    return Outcome(scenario, rounds)


def costs(options: Options) -> dict[str, Spread]:
    """Microseconds per message of the core's bookkeeping."""
    runs = max(1, options.messages // bookkeeping.RUN_MESSAGES)
    return {name: Spread.of([cost(runs) for _ in range(COST_REPEATS)]) for name, cost in bookkeeping.COSTS.items()}


def save(path: Path, text: str) -> None:
    """Write all of it or nothing: a run that is stopped leaves the results that were there."""
    path = path.resolve()
    with asking.room(path.parent):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # A device or a pipe stays what it is.
            return
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def perform(asked: asking.Asked) -> None:
    """Measure, print and write down each scenario in its turn, then the core and the peers."""
    options, outcomes, document = asked.options, list[Outcome](), dict[str, object]()

    def keep(core: Mapping[str, Spread], **others: object) -> None:
        nonlocal document
        document = {"asked": asked.as_json(), **report.as_json(options, outcomes, core), **others}
        save(asked.output, json.dumps(document, indent=2) + "\n")

    console, tables = Console(stderr=True), None if asked.to_machine else printer()
    if tables is not None:
        report.head(tables, options)
    with console.status("") as status:

        def show(picture: Callable[[Console], None]) -> None:
            if tables is not None:
                status.stop()  # else the table is printed into the line that says what is going on
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
    """Measure, print, and write the results down."""
    asked = asking.asked(arguments, list(SCENARIOS), (__doc__ or "").partition("\n")[0])
    with asking.told("make bench"):
        perform(asked)


if __name__ == "__main__":
    with reaped():
        main()
