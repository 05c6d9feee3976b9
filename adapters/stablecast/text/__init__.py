"""Text for people: counts, failures with their remedy, the console and exit statuses."""

from stablecast.text.sentences import plural, refusal, unread

__all__ = ["plural", "refusal", "unread"]
