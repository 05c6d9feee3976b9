"""Why stores do not register a source, in their own words."""

from collections import deque

MAX_TROUBLES = 16
"""Sentences about stores that a failed registration shows."""


class Troubles:
    """The newest sentences."""

    def __init__(self) -> None:
        """None yet."""
        self._sentences: deque[str] = deque(maxlen=MAX_TROUBLES)

    def add(self, sentence: str) -> None:
        """A store said so."""
        self._sentences.append(sentence)

    def clear(self) -> None:
        """All is well."""
        self._sentences.clear()

    def missing(self, topic: str, within: float | None) -> str:
        """What a source says that waited so many seconds."""
        why = "; ".join(sentence.rstrip(".") for sentence in dict.fromkeys(self._sentences)) or "no store answered"
        missing = f"source '{topic}' is not registered with enough stores after {within:g} s"
        return f"{missing}: {why}; start the stores or correct their addresses"
