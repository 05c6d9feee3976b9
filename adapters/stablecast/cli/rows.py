"""`stablecast rows`: print the documented behaviours, their status, tests and planted faults.

Tests and faults are part of the source tree only, and so is the code that joins them: `tests.rows`.
"""

import sys
from importlib import import_module

from stablecast.lab.model.catalog import folder


def run(arguments: list[str]) -> int:
    """Run `tests.rows` of the source tree with these arguments; return its exit status.

    Raises:
        ModelError: There is no source tree here.
    """
    tree = str(folder().parent)
    if tree not in sys.path:
        sys.path.insert(0, tree)
    status: int = import_module("tests.rows.__main__").main(arguments)
    return status
