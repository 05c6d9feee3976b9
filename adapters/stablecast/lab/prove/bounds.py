"""Define the default bounds of a proof, in a module that the command line can import quickly for its help."""

from enum import StrEnum
from typing import Final

MAX_STATES: Final = 120_000
"""Default limit of states, reached within a minute on one core."""

MAX_TAKEOVERS: Final = 2
"""Most takeovers: one of two live processes takes the stores from the other once, and back."""


class TakeoverFault(StrEnum):
    """Name the faults that no number bounds."""

    RIVAL = "rival"
    """A process is partitioned, another process with its RegID replaces it, and the first one returns."""
    TWIN = "twin"
    """A context has two sources with one RegID, and neither is partitioned."""
