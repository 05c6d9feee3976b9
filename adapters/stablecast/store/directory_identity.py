"""The identity of a store in its state directory: the store's name, that it was here, and its generation.

A cache directory may lie on a disk that is replaced. If the state directory names the store, an empty cache directory
is one whose files were lost, whatever `--new` says (formal design, 7.6). A directory of another store is refused.
"""

import json
from contextlib import suppress
from pathlib import Path

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.generations import MARK_BITS, NONE, following, outdated
from stablecast.runtime import durable_files, machine
from stablecast.text.json_text import from_json

IDENTITY_NAME = "identity.json"


class IdentityError(StablecastError):
    """A state directory that cannot be used. The text names the reason and the remedy."""


def known(directory: Path, name: str) -> bool:
    """Return True if the store of this name was here before.

    Raises:
        IdentityError: The directory is missing, or belongs to another store.
        OSError: The directory cannot be read.
    """
    if not machine.files.is_directory(directory):
        raise IdentityError(f"there is no state directory {directory}; create it or correct disk-state-directory")
    path = directory / IDENTITY_NAME
    try:
        owner = from_json(machine.files.read_bytes(path))["store"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        aside = path.with_name(f"{IDENTITY_NAME}.damaged")
        machine.files.rename(path, aside)
        return True
    if owner != name:
        raise IdentityError(
            f"{directory} is the state directory of store {owner!r}, not of {name!r}; use another one, or remove {path}"
        )
    return True


def generation(directory: Path) -> int:
    """Return the newest generation of the store that is noted here, 0 if none is."""
    try:
        return int(from_json(machine.files.read_bytes(directory / IDENTITY_NAME)).get("generation", 0))
    except (OSError, ValueError, AttributeError, TypeError):
        return 0


def note(directory: Path, name: str, reached: int = 0) -> None:
    """Write durably that the store of this name is here, and the generation that it reached. Raises OSError."""
    path = directory / IDENTITY_NAME
    if machine.files.exists(path) and reached in (0, generation(directory)):
        return
    durable_files.write(path, json.dumps({"store": name} | ({"generation": reached} if reached else {})).encode())


class StoreGeneration:
    """The current generation of one store, and its note in the state directory.

    The journal holds the generation, and so does the state directory, a second path that a backup of the cache
    directory does not bring back. Clients and other stores know it as well (`stablecast.core.protocol.generations`).

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
        known = NONE if self._directory is None else generation(self._directory)
        self.current = following(max(before, known), machine.entropy.bits(MARK_BITS))
        return before != NONE and outdated(before, known)

    def end(self) -> None:
        """Begin the generation in which the store does not run."""
        self.current = following(self.current, machine.entropy.bits(MARK_BITS))

    def adopt(self, later: int) -> None:
        """Go on in a later generation, because somebody knows that this one is over."""
        if later:
            self.current = later

    def note(self) -> None:
        """Note the generation in the state directory. The journal must have it."""
        if self._noted != self.current:
            self._noted = self.current
            if self._directory is not None:
                with suppress(OSError):  # Then a restored copy of the cache directory may not be noticed here.
                    note(self._directory, self._name, self.current)
