"""The report of a failing world: its schedule, its timeline, and the line that keeps it as a regression."""

from collections import Counter
from collections.abc import Iterable, Sequence

from stablecast.testing.exploration import WorldReport
from stablecast.testing.schedule import Strike
from stablecast.testing.world_run import Outcome


def failure_lines(report: WorldReport) -> list[str]:
    found = report.found
    if found is None or found.failure is None:
        return []
    lines = [_headline(report, found)]
    if found.failure.program:
        lines.append(f"The exception is of the program {found.failure.program}.")
    lines += ["", "Faults:" if found.strikes else "Faults: none. The test fails without any fault."]
    lines += [f"  {strike}" for strike in found.strikes]
    lines += ["", f"Timeline ({'real' if report.real else 'virtual'} time):", *found.timeline.lines()]
    if found.fates:
        lines += ["", "Messages that programs had when they were killed:", *found.fates]
    if found.failure.waiting:
        lines += ["", "Programs wait at:", *(f"  {place}" for place in found.failure.waiting)]
    if report.traces:
        passes = "" if report.traces_fail else " (the run with traces passes, because to write them takes time)"
        lines += ["", f"Traces: {report.traces}{passes}"]
    if report.real:
        return lines
    lines += ["", "To run this seed again: pytest --stablecast-seed " + str(found.seed)]
    lines += ["To keep this failure as a regression, put this line above the test:", regression_line(found)]
    return lines


def _headline(report: WorldReport, found: Outcome) -> str:
    worlds = f"after {report.worlds:,} {'world' if report.worlds == 1 else 'worlds'}"
    text = f"Seed {found.seed} fails {worlds}"
    if report.first > len(found.strikes):
        text += (
            f"; {report.searched} more worlds shortened its schedule from {report.first} to {len(found.strikes)} faults"
        )
    return text + "."


def regression_line(found: Outcome) -> str:
    """Return the decorator that makes a failing run a regression."""
    return f"@stablecast.testing.regression(seed={found.seed}, faults={literals(found.strikes)})"


def literals(strikes: Sequence[Strike]) -> str:
    """Return a schedule as a Python literal."""
    return repr([strike.literal() for strike in strikes])


def summary(report: WorldReport) -> str:
    """Return one line about all worlds of a test."""
    count = sum(report.faults.values())
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(_plain(report.faults).items()))
    worlds = f"{report.worlds:,} {'world' if report.worlds == 1 else 'worlds'}"
    faults = f"{count:,} {'fault' if count == 1 else 'faults'}" + (f" ({kinds})" if kinds else "")
    verdict = "nothing found" if report.found is None else f"seed {report.found.seed} fails"
    skipped = f", left out on a real machine: {', '.join(_words(report.left_out))}" if report.left_out else ""
    return f"{worlds}, {faults}, {verdict}, {report.seconds:.1f} s{skipped}"


def _plain(faults: Counter[str]) -> dict[str, int]:
    return dict(zip(_words(faults), faults.values(), strict=True))


def _words(kinds: Iterable[str]) -> list[str]:
    return [kind.replace("_", " ") for kind in kinds]
