"""Names of options that the command line needs for its help; this module imports nothing, so that help is fast."""

from typing import Final

SAFE: Final = "safe"
"""The name of the default profile."""

PROFILES: Final = (SAFE, "5.3", "6.17")
"""The names of the sets of defaults; `profiles` has their values."""

MAX_SESSION_ID: Final = (1 << 64) - 2
"""The largest session id; the next number means no session id on the wire."""
