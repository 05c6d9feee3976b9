"""Run whole worlds until one breaks a rule.

The exit status is 1 if a world breaks the rule, 2 if worlds break other rules only, and 0 if none breaks any.
"""

import sys
import tempfile
from pathlib import Path

from stablecast.lab.whole.drawn_schedule import draw
from stablecast.lab.whole.runner import WholeReport, run


def main(rule: str, first: int, count: int, *, traced: bool) -> int:
    """Run `count` worlds from seed `first` on, and return the exit status."""
    others: list[str] = []
    for seed in range(first, first + count):
        broken = [text.partition(":")[0] for text in _run(seed, traced=traced).violations]
        if rule in broken:
            print(f"seed {seed} breaks {rule}")
            return 1
        others += [f"seed {seed} breaks {found}, not {rule}" for found in broken]
    print(*others or [f"{count} seeds from {first} break nothing"], sep="\n")
    return 2 if others else 0


def _run(seed: int, *, traced: bool) -> WholeReport:
    if not traced:
        return run(draw(seed))
    with tempfile.TemporaryDirectory(prefix="stablecast-mutant-traces-") as directory:
        return run(draw(seed), Path(directory))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), traced=sys.argv[4:] == ["traced"]))
