"""The generation of a running store, and its note in the state directory.

The journal holds the generation, and so does the state directory, a second path that a backup of the cache directory
does not bring back. Clients and other stores know it as well (`stablecast.core.protocol.generations`).
"""

from contextlib import suppress
from pathlib import Path

from stablecast.core.protocol.generations import MARK_BITS, NONE, following, outdated
from stablecast.runtime import machine
from stablecast.store import directory_identity


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
        self.current = following(max(before, known), machine.entropy.bits(MARK_BITS))
        return before != NONE and outdated(before, known)

    def end(self) -> None:
        """Begin the generation in which the store does not run."""
        self.current = following(self.current, machine.entropy.bits(MARK_BITS))

    def adopt(self, generation: int) -> None:
        """Go on in a later generation, because somebody knows that this one is over."""
        if generation:
            self.current = generation

    def note(self) -> None:
        """Note the generation in the state directory. The journal must have it."""
        if self._noted != self.current:
            self._noted = self.current
            if self._directory is not None:
                with suppress(OSError):  # Then a restored copy of the cache directory may not be noticed here.
                    directory_identity.note(self._directory, self._name, self.current)
