"""How far a proof looks by default; a module of its own because the command line names it in its help."""

from enum import StrEnum
from typing import Final

MAX_STATES: Final = 120_000
"""States to look at by default: within a minute on one core."""

MAX_TAKEOVERS: Final = 2
"""How often one of two living processes takes the stores from the other: once, and back."""


class Fault(StrEnum):
    """What may go wrong beside what is bounded by a number."""

    RIVAL = "rival"
    """A process is cut off, another one with its RegID takes its place, and the first one comes back."""
    TWIN = "twin"
    """A context has two sources with one RegID, neither of which is cut off."""
