"""Text for people: counts, failures with their remedy, the console and exit statuses."""

from stablecast.text.sentences import nearest, plural, refusal, unread

__all__ = ["nearest", "plural", "refusal", "unread"]
