"""Define the default bounds, in a module that the command line can import quickly for its help."""

from typing import Final

STATES: Final = 1_100_000
"""States of all variants in the long form."""
SHORT: Final = 12_000
"""States of all variants in the short form, in a few seconds."""
