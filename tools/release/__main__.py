"""Build and check a release: `make dist`, `make release`, `make newcomers`, `make licences`."""

import argparse
import subprocess
import sys

from tests.support.tree import name
from tools.release import installation, newcomers, supply
from tools.release.distributions import build, sha256
from tools.release.environments import ReleaseError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--check", action="store_true", help="install with the oldest and newest Python, and use it")
    parser.add_argument("--newcomers", action="store_true", help="follow the pages for newcomers with real processes")
    parser.add_argument("--published", action="store_true", help="build with locked tools, and list the parts")
    parser.add_argument("--licences", action="store_true", help="only print the licences of what is shipped")
    arguments = parser.parse_args()
    try:
        if arguments.licences:
            for line in supply.licences():
                print(line, flush=True)
            return 0
        made = supply.published() if arguments.published else build()
        for path in (*made.files, *((supply.SBOM,) if arguments.published else ())):
            print(f"{sha256(path)}  {name(path)}", flush=True)
        if arguments.check:
            for line in installation.check(made):
                print(line, flush=True)
        if arguments.newcomers:
            for line in newcomers.follow(made):
                print(line, flush=True)
    except (ReleaseError, subprocess.SubprocessError) as error:
        print(f"The release is not usable: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
