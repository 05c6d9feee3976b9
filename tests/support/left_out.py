"""The tests that this machine leaves out are counted, with the reason and the command that would change it.

`STABLECAST_COUNTS` names a folder. Each process of pytest writes its counts there, and
`python -m tests.support.left_out FOLDER` adds them up for people. A second argument is the reason for which a whole
step was left out. With `CI=true` whatever is left out fails.
"""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.tree import ROOT

CI = "CI" in os.environ
OUTCOMES = ("passed", "failed", "error")
NO_SPARK = "the spark extra is missing: install a Java 17, then run 'make .venv'"
TOOLS = ROOT / "packaging" / "machine" / "tools.txt"
"""The programs that tests use, and the packages that have them."""


def needs(program: str) -> pytest.MarkDecorator:
    """Return a mark that leaves a test out where a program of `packaging/machine/tools.txt` is missing."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=missing(program))


def missing(program: str) -> str:
    """Return a sentence which says that a program is missing, with the command that installs it."""
    rows = (line.split() for line in TOOLS.read_text(encoding="utf-8").splitlines() if line[:1].strip(" #"))
    packages = {row[0]: row[1].partition("|")[0] for row in rows}
    return f"{program} is missing: run 'sudo apt-get install -y {packages[program]}'"


def judge(report: Any) -> Any:
    """Let a report of a test or a collector fail on a build machine if something was left out; return it."""
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"left out, although CI is set: {reason(report)}"
    return report


def reason(report: Any) -> str:
    """Return why a test was left out."""
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def write(stats: dict[str, list[Any]], folder: Path, late: int = 0) -> None:
    """Write how many tests passed, failed, were left out, and came too late for the budget in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = {outcome: len(stats.get(outcome, ())) for outcome in OUTCOMES}
    skipped = Counter(reason(report) for report in stats.get("skipped", ()))
    _enter(folder, {"counts": counts, "left_out": skipped, "late": late})


def _enter(folder: Path, record: dict[str, Any]) -> None:
    (folder / f"{uuid4().hex}.json").write_text(json.dumps(record), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Enter a step that was left out, or print the sums; return the exit status."""
    folder = Path(arguments[0])
    if len(arguments) > 1:
        folder.mkdir(parents=True, exist_ok=True)
        _enter(folder, {"counts": {}, "left_out": {arguments[1]: 1}})
        return int(CI)
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    late = 0
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        counts.update(record["counts"])
        left_out.update(record["left_out"])
        late += record.get("late", 0)
    failed = counts["failed"] + counts["error"]
    if left_out:
        print("\nNot run:")
        for why, count in left_out.most_common():
            print(f"  {count:5}  {why}")
        print("'packaging/machine/prepare test' installs what this machine lacks, as root or with sudo.")
    if late:
        print(f"\nThe budget had no time for {late} tests. The night runs them, and so does 'make test-all'.")
    print(f"\n{counts['passed']} passed, {failed} failed, {sum(left_out.values())} skipped")
    return int(bool(failed or not counts["passed"] or (CI and left_out)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
