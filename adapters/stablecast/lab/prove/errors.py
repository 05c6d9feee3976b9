"""Define the error of proofs."""

from stablecast.core.errors import StablecastError


class ProveError(StablecastError):
    """Report a configuration that cannot be read, or that no source could start with."""
