"""`python -m tests.mutants [NAME...]`: plant each fault, run its killer, print what became of it and the kill rate."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS
from tests.support.tree import ROOT

KILLED = 1
"""Exit status of a killer that found something: pytest's for failed tests, and that of `worlds`."""


def survives(mutant: Mutant) -> str:
    """Why the mutant lives, or nothing if it was killed."""
    with tempfile.TemporaryDirectory(prefix="stablecast-mutant-") as directory:
        mutant.plant(Path(directory))
        done = subprocess.run(
            [sys.executable, "-m", *mutant.killer.command(Path(directory))],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{directory}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == KILLED:
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return f"exit {done.returncode}: {lines[-1] if lines else 'nothing said'}"


def main(names: list[str]) -> int:
    """Returns the exit status: 0 when every mutant was killed."""
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        print(f"there is no mutant {', '.join(sorted(unknown))}; tests/mutants/table.py has the names", file=sys.stderr)
        return 2
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, why in zip(chosen, pool.map(survives, chosen), strict=True):
            survivors += bool(why)
            verdict = f"SURVIVED ({why})" if why else "killed"
            print(f"{mutant.name:40} {mutant.module:14} {verdict:8} {mutant.killer}", flush=True)
    killed = len(chosen) - survivors
    print(f"kill rate {100 * killed // len(chosen)} %: {killed} of {len(chosen)} mutants")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
