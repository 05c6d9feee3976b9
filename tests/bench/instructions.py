"""Instructions that the core's hot loops take for a message: the same on a busy machine as on a quiet one.

    python -m tests.bench.instructions            compare with what is on record
    python -m tests.bench.instructions --record   put it on record

Valgrind counts them. What starting takes is in both of two runs and falls out. The counts hold for one build of the
interpreter; for another there is nothing to compare with.
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

from tests.bench.bookkeeping import COSTS, RUN_MESSAGES
from tests.support.tree import LAYERS, ROOT

RECORD: Final = Path(__file__).with_suffix(".json")
PYTHON: Final = f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}"
FEWER_RUNS, MORE_RUNS = 1_000, 2_000
TOLERANCE: Final = 0.1
"""Share by which a count may grow: a smaller step is not worth a conversation, a few of them are."""

MISSING: Final = "valgrind is missing, it counts the instructions: run 'sudo apt-get install -y valgrind'"
COUNTED: Final = re.compile(r"I +refs: +([\d,]+)")
VALGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
PROGRAM: Final = "import sys; from tests.bench.bookkeeping import COSTS; COSTS[sys.argv[1]](int(sys.argv[2]))"


def available() -> bool:
    """Whether there is a counter."""
    return shutil.which(VALGRIND[0]) is not None


def counts() -> dict[str, int]:
    """Instructions for a message, by the role whose bookkeeping it is."""
    return {role: _of(role) for role in COSTS}


def _of(role: str) -> int:
    _run((), role, 1)  # compiles what is imported, so that no run that counts does
    more, fewer = _total(role, MORE_RUNS), _total(role, FEWER_RUNS)
    return (more - fewer) // ((MORE_RUNS - FEWER_RUNS) * RUN_MESSAGES)


def _total(role: str, runs: int) -> int:
    told = _run(VALGRIND, role, runs)
    found = COUNTED.search(told)
    if found is None:
        raise RuntimeError(f"valgrind did not say how many instructions there were: {told}")
    return int(found[1].replace(",", ""))


def _run(counter: Sequence[str], role: str, runs: int) -> str:
    """What is said on standard error."""
    places = os.pathsep.join([str(ROOT), *(str(ROOT / layer) for layer in LAYERS)])
    command = [*counter, sys.executable, "-c", PROGRAM, role, str(runs)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": places, "PYTHONHASHSEED": "0"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr


def recorded() -> Mapping[str, int] | None:
    """What is on record for this interpreter."""
    known: dict[str, dict[str, int]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return known.get(PYTHON)


def main(arguments: Sequence[str]) -> int:
    """Count, and compare or record; returns the exit status."""
    if not available():
        print(MISSING, file=sys.stderr)
        return 1
    found, known = counts(), recorded()
    for role, count in found.items():
        print(f"{role}: {count} instructions a message" + (f", {known[role]} on record" if known else ""))
    if "--record" in arguments:
        everything = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        RECORD.write_text(json.dumps(everything | {PYTHON: found}, indent=1) + "\n", encoding="utf-8")
        return 0
    return int(known is not None and any(found[role] > known[role] * (1 + TOLERANCE) for role in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
