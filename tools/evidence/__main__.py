"""Collect what the guarantees rest on: `make evidence`.

The exit status is 1 if a part failed, or if one is missing in the full form.
"""

import argparse
import sys

from tests.support.tree import name
from tools.evidence.bundle import OUTPUT, Verdict, collect
from tools.evidence.parts import PARTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="make evidence ARGS=...", description=__doc__)
    parser.add_argument("--full", action="store_true", help="everything: takes a night, and nothing may be missing")
    parser.add_argument("--only", nargs="+", choices=[part.name for part in PARTS], help="these parts only")
    arguments = parser.parse_args()
    wanted = [part for part in PARTS if not arguments.only or part.name in arguments.only]
    findings = collect(wanted, full=arguments.full)
    for verdict in Verdict:
        parts = [one.part for one in findings if one.verdict is verdict]
        print(f"{verdict}: {', '.join(parts) or 'none'}")
    print(f"The bundle is in {name(OUTPUT)}: read {name(OUTPUT / 'README.md')}.")
    bad = {Verdict.FAILED, Verdict.MISSING} if arguments.full else {Verdict.FAILED}
    return int(any(one.verdict in bad for one in findings))


if __name__ == "__main__":
    sys.exit(main())
