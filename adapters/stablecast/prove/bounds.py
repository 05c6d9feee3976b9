"""How far a proof looks by default; a module of its own because the command line names it in its help."""

from typing import Final

MAX_STATES: Final = 120_000
"""States to look at by default: within a minute on one core."""
