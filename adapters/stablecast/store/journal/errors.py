"""The one error of the journal."""

from stablecast.core.errors import StablecastError


class JournalError(StablecastError):
    """The journal cannot be opened, written, synced or read; the text is one sentence that names the remedy."""
