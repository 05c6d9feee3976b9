"""Define the errors of proofs."""

from stablecast.core.errors import StablecastError


class ProofError(StablecastError):
    """A formula cannot be read, lies outside the decidable fragment, or a solver is missing."""
