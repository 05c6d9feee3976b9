"""Run simulated worlds until one breaks a rule.

The exit status is 1 if a world breaks the rule, 2 if worlds break other rules only, and 0 if none breaks any.
"""

import sys

from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw


def main(rule: str, first: int, count: int) -> int:
    """Run `count` worlds from seed `first` on, and return the exit status."""
    others: list[str] = []
    for seed in range(first, first + count):
        broken = [violation.rule for violation in run(draw(seed)).violations]
        if rule in broken:
            print(f"seed {seed} breaks {rule}")
            return 1
        others += [f"seed {seed} breaks {found}, not {rule}" for found in broken]
    print(*others or [f"{count} seeds from {first} break nothing"], sep="\n")
    return 2 if others else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
