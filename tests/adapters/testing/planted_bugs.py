"""All planted bugs: small applications with one bug each, and the same applications without it.

The bugs are those that people make. `python -m tests.adapters.testing.planted_bugs SEEDS` runs the mended applications.
"""

import logging
import os
import sys

from tests.adapters.testing import planted_consumers, planted_servers, planted_sources
from tests.adapters.testing.planted_support import BUGS, PlantedBug

MODULES = (planted_consumers, planted_sources, planted_servers)
"""The modules that fill the table."""


def main(seeds: int) -> None:
    """Run all mended applications, and print what is found."""
    logging.disable()
    for one in BUGS:
        report = one.explore(seeds, mended=True, jobs=os.cpu_count() or 1)
        found = "" if report.found is None or report.found.failure is None else repr(report.found.failure.error)
        print(f"{one.name:35} {report.worlds:6,} worlds {report.seconds:7.1f} s {found}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))


__all__ = ["BUGS", "PlantedBug"]
