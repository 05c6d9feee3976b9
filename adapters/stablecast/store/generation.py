"""The generation of a store: each start and each clean stop begins another one.

A copy of a directory that was restored from a backup looks like a store that lost nothing. It is noticed by its
generation, if anybody knows a later one. A generation is a number with a random part: a copy that is started counts on
from its own number, so two runs may have the same number, and the random part tells them apart. The journal holds the
generation, and so does the state directory, a second path that a backup of the cache directory does not bring back.
"""

from contextlib import suppress
from pathlib import Path

from stablecast.runtime import machine
from stablecast.store import directory_identity

MARK_BITS = 32
"""Bits of the random part."""

NONE = 0
"""The generation of a journal of an earlier release, and of one without a record."""


def following(generation: int) -> int:
    """Return a generation after this one."""
    return ((generation >> MARK_BITS) + 1) << MARK_BITS | machine.entropy.bits(MARK_BITS)


def outdated(generation: int, known: int) -> bool:
    """Return whether somebody knows a generation that this one does not continue.

    >>> outdated(5 << 32 | 7, 5 << 32 | 7), outdated(5 << 32 | 7, 5 << 32 | 8), outdated(5 << 32, 4 << 32 | 9)
    (False, True, False)
    """
    return known != generation and known >> MARK_BITS >= generation >> MARK_BITS and known != NONE


class StoreGeneration:
    """The current generation of one store, and its note in the state directory.

    Attributes:
        current: The generation; `NONE` before `begin`.
    """

    def __init__(self, state_directory: Path | None, name: str) -> None:
        """Make the generation of a store that has not started; without a state directory there is no second path."""
        self.current = NONE
        self._noted = NONE
        self._directory = state_directory
        self._name = name

    def begin(self, before: int) -> bool:
        """Begin the generation after the one in the journal; return whether the journal is an older copy."""
        known = NONE if self._directory is None else directory_identity.generation(self._directory)
        self.current = following(max(before, known))
        return before != NONE and outdated(before, known)

    def end(self) -> None:
        """Begin the generation in which the store does not run."""
        self.current = following(self.current)

    def note(self) -> None:
        """Note the generation in the state directory. The journal must have it."""
        if self._noted != self.current:
            self._noted = self.current
            if self._directory is not None:
                with suppress(OSError):  # Then a restored copy of the cache directory may not be noticed here.
                    directory_identity.note(self._directory, self._name, self.current)
