"""The demo's result: the application's file counted, the traces judged."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.text import plural


@attrs.frozen
class Outcome:
    """What a machine reads; `problems` has a sentence for everything that is wrong.

    `ports` are all ports that were used, by protocol: a capture of the demo can be decoded with them.
    """

    sent: int
    delivered: int
    lost: int
    duplicates: int
    redelivered: int
    crashes: Mapping[str, int]
    traces: list[str]
    verified: bool
    records: int
    violations: int
    ports: Mapping[str, list[int]]
    problems: list[str]

    @property
    def good(self) -> bool:
        """Whether every message arrived once and every trace replays."""
        return self.verified and not self.problems


def judge(
    messages: int, sent: int, ledger: Path, traces: Path, crashes: Mapping[str, int], ports: Mapping[str, list[int]]
) -> Outcome:
    """Count what the receiver wrote into `ledger` and replay every trace of the directory `traces`."""
    numbers = [int(line) for line in ledger.read_bytes().splitlines()]
    again = ledger.with_suffix(".again").read_bytes().splitlines()
    missing = sorted(set(range(messages)) - set(numbers))
    duplicates = len(numbers) - len(set(numbers))
    files = sorted(traces.glob("*.sct"))
    summary = verify_paths(files)
    problems = [f"message {number} was not delivered" for number in missing]
    if duplicates:
        problems.append(plural(duplicates, "message", "was processed twice", "were processed twice"))
    problems += [report.error for report in summary.files if report.error is not None]
    problems += [f"{violation.path.name}: {violation.rule}: {violation.text}" for violation in summary.violations]
    return Outcome(
        sent=sent,
        delivered=messages - len(missing),
        lost=len(missing),
        duplicates=duplicates,
        redelivered=len(again),
        crashes=crashes,
        traces=[str(path) for path in files],
        verified=summary.clean and summary.records > 0,
        records=summary.records,
        violations=len(summary.violations),
        ports=ports,
        problems=problems,
    )
