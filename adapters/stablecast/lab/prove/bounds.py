"""Define the default bounds of a proof, in a module that the command line can import quickly for its help."""

from enum import StrEnum
from typing import Final

MAX_STATES: Final = 120_000
"""Default limit of states, reached within a minute on one core."""

MAX_TAKEOVERS: Final = 2
"""Most takeovers: one of two live processes takes the stores from the other once, and back."""


MAX_WIPES: Final = 2
"""Default number of disks that are lost one after the other: no majority of three keeps its own."""


class ProofFault(StrEnum):
    """Name the faults that `--faults` chooses."""

    RIVAL = "rival"
    """A process is partitioned, another process with its RegID replaces it, and the first one returns."""
    TWIN = "twin"
    """A context has two sources with one RegID, and neither is partitioned."""
    WIPE = "wipe"
    """A disk is lost after the other, each when the other stores report that they lack nothing."""


TAKEOVERS: Final = (ProofFault.RIVAL, ProofFault.TWIN)
"""Faults of two live processes."""

COMPOSED_STATES: Final = 1_100_000
"""States of all variants of `stablecast model composed`."""
COMPOSED_SHORT: Final = 12_000
"""States of all variants in the short form, in a few seconds."""
