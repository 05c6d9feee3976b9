"""Errors of writing and reading traces."""

from stablecast.core.errors import StablecastError


class TraceError(StablecastError):
    """A trace cannot be written or read; the text is one sentence that names the file."""


class TruncatedError(TraceError):
    """A trace ends in the middle of a frame that was complete once."""


class SchemaError(TraceError):
    """A value of a trace does not fit the schema."""
