"""What can be wrong with what is to be proved."""

from stablecast.core.errors import StablecastError


class ProveError(StablecastError):
    """A configuration that cannot be read, or that no source could start with; one sentence says why."""
