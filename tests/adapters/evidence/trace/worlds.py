"""`python -m tests.adapters.evidence.trace.worlds RULE FIRST COUNT DIR` leaves traces of a world that breaks a rule.

With the core of the path it runs with, which may have a fault planted. Exit status 1 when a world broke the rule.
"""

import sys
from pathlib import Path

from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw


def main(rule: str, first: int, count: int, directory: Path) -> int:
    """Run worlds in a process of their own."""
    for seed in range(first, first + count):
        if rule in [violation.rule for violation in run(draw(seed)).violations]:
            run(draw(seed), directory)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
