"""What sentences for people have in common: counts of things, and files that the system refused."""

from stablecast.sentences.counts import plural
from stablecast.sentences.refusals import refusal, unread

__all__ = ["plural", "refusal", "unread"]
