"""What the command line must know of the options before it needs them; it imports nothing."""

from typing import Final

SAFE: Final = "safe"
"""The default profile."""

PROFILES: Final = (SAFE, "5.3", "6.17")
"""The sets of defaults by name; what they contain is in `profiles`."""

MAX_SESSION_ID: Final = (1 << 64) - 2
"""The largest session id; the one above it means none on the wire."""
