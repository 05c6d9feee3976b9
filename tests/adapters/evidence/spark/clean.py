"""Runs without a fault have no violation: worlds of the simulator, and the demo with its crashes.

    python -m tests.adapters.evidence.spark.clean --seeds 500 --demo --master 'local[2]'

judges the traces of all of them in one job on Spark; the master `here` is the judge in process. Prints one JSON object;
exit status 1 if there is a violation.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import VerificationSummary
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw
from tests.support.program import outcome

HERE: Final = "here"


def worlds(seeds: range, directory: Path) -> tuple[list[Path], list[str]]:
    """Return the traces of these worlds, and the findings of the simulator's own checkers."""
    files, broken = [], []
    for seed in seeds:
        folder = directory / f"seed-{seed}"
        broken += [f"seed {seed}: {one.rule}: {one.text}" for one in run(draw(seed), folder).violations]
        files += find([folder])
    return files, broken


def demo(directory: Path) -> list[Path]:
    status, out, err = outcome("demo", "--json", "--keep", str(directory))
    assert status == 0, err
    return [Path(path) for path in json.loads(out)["traces"]]


def judge(files: list[Path], master: str) -> VerificationSummary:
    if master == HERE:
        return verify_paths(files)
    from stablecast.evidence.spark import connect, verify_on  # noqa: PLC0415 - an extra that the other judge does without

    return verify_on(connect(master), files).summary


def main(arguments: list[str] | None = None) -> int:
    """Run the command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--master", default=HERE)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        files, broken = worlds(range(given.first, given.first + given.seeds), Path(scratch))
        files += demo(Path(scratch) / "demo") if given.demo else []
        summary = judge(files, given.master)
    found = {
        "worlds": given.seeds,
        "traces": len(summary.files),
        "records": summary.records,
        "simulator": broken,
        "violations": [one.as_json() for one in summary.violations],
        "errors": [report.error for report in summary.files if report.error is not None],
        "untold": len(summary.untold),
    }
    print(json.dumps(found))
    return 0 if summary.clean and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
