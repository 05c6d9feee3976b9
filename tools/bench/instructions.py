"""Instructions per message of the core's hot loops. A busy machine does not change these counts.

    python -m tools.bench.instructions            compare with the recorded counts
    python -m tools.bench.instructions --record   record the counts

Valgrind counts instructions in two runs of different length. The difference excludes the start of the interpreter. A
count is valid for one build of the interpreter only.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.support.tree import PYTHON_PATH
from tools.bench.core_costs import COSTS, RUN_MESSAGES

RECORD: Final = Path(__file__).with_suffix(".json")
PYTHON: Final = f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}"
FEWER_RUNS, MORE_RUNS = 1_000, 2_000
TOLERANCE: Final = 0.1
"""Share by which a count may grow."""

MISSING: Final = "valgrind, which counts the instructions, is missing: run 'sudo apt-get install -y valgrind'"
COUNTED: Final = re.compile(r"I +refs: +([\d,]+)")
VALGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
PROGRAM: Final = "import sys; from tools.bench.core_costs import COSTS; COSTS[sys.argv[1]](int(sys.argv[2]))"


def available() -> bool:
    """Return whether valgrind is installed."""
    return shutil.which(VALGRIND[0]) is not None


def counts() -> dict[str, int]:
    """Return the instructions per message by role."""
    return {role: _of(role) for role in COSTS}


def _of(role: str) -> int:
    _run((), role, 1)  # compiles the imported modules, so that no counted run does
    more, fewer = _total(role, MORE_RUNS), _total(role, FEWER_RUNS)
    return (more - fewer) // ((MORE_RUNS - FEWER_RUNS) * RUN_MESSAGES)


def _total(role: str, runs: int) -> int:
    report = _run(VALGRIND, role, runs)
    found = COUNTED.search(report)
    if found is None:
        raise RuntimeError(f"the report of valgrind has no instruction count: {report}")
    return int(found[1].replace(",", ""))


def _run(counter: Sequence[str], role: str, runs: int) -> str:
    """Run the hot loops; return standard error."""
    command = [*counter, sys.executable, "-c", PROGRAM, role, str(runs)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": PYTHON_PATH, "PYTHONHASHSEED": "0"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr


def recorded() -> Mapping[str, int] | None:
    """Return the recorded counts of this interpreter, or None."""
    known: dict[str, dict[str, int]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return known.get(PYTHON)


def main(arguments: Sequence[str]) -> int:
    """Count, and compare or record; return the exit status."""
    if not available():
        print(MISSING, file=sys.stderr)
        return 1
    found, known = counts(), recorded()
    for role, count in found.items():
        print(f"{role}: {count} instructions a message" + (f", {known[role]} recorded" if known else ""))
    if "--record" in arguments:
        everything = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        RECORD.write_text(json.dumps(everything | {PYTHON: found}, indent=1) + "\n", encoding="utf-8")
        return 0
    return int(known is not None and any(found[role] > known[role] * (1 + TOLERANCE) for role in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
