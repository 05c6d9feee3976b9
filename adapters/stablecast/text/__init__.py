"""What sentences for people have in common: counts of things, and files that the system refused."""

from stablecast.text.counts import plural
from stablecast.text.remedies import refusal, unread

__all__ = ["plural", "refusal", "unread"]
