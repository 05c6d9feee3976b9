"""All planted bugs: small applications with one bug each, and the same applications without it.

The bugs are those that people make. `python -m tests.adapters.testing.planted_bugs SEEDS [NAME...]` runs the mended
applications, all or the named ones. `--jobs N` sets the number of processes.
"""

import argparse
import logging
import os
from collections.abc import Sequence

from tests.adapters.testing import planted_consumers, planted_servers, planted_sources
from tests.adapters.testing.planted_support import BUGS, PlantedBug

MODULES = (planted_consumers, planted_sources, planted_servers)
"""The modules that fill the table."""


def main(seeds: int, names: Sequence[str], jobs: int) -> None:
    """Run the mended applications of these names, or all, and print what is found."""
    logging.disable()
    for one in BUGS:
        if names and one.name not in names:
            continue
        report = one.explore(seeds, mended=True, jobs=jobs)
        found = "" if report.found is None or report.found.failure is None else repr(report.found.failure.error)
        print(f"{one.name:35} {report.worlds:6,} worlds {report.seconds:7.1f} s {found or 'clean'}", flush=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("seeds", type=int)
    arguments.add_argument("names", nargs="*", metavar="name")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = arguments.parse_intermixed_args()
    if unknown := set(given.names) - {one.name for one in BUGS}:
        arguments.error(f"there is no planted bug {', '.join(sorted(unknown))}")
    main(given.seeds, given.names, given.jobs)


__all__ = ["BUGS", "PlantedBug"]
