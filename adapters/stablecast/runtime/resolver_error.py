"""The one error of the resolver."""

from stablecast.core.errors import StablecastError


class ResolverError(StablecastError):
    """A resolver or relay cannot start; the text is one sentence that names the remedy."""
