"""What a store notes of itself in its state directory: that it was here, and whose directory it is.

A cache directory may lie on a disk that is replaced. If the state directory says that the store had a journal, an
empty cache directory is one whose files are gone, whatever `--new` says (formal design, 7.6). And a directory of
another store is never taken by mistake.
"""

import json
import os
from pathlib import Path

from stablecast.core.errors import StablecastError
from stablecast.store.journal.segments import sync_directory

IDENTITY_NAME = "identity.json"


class IdentityError(StablecastError):
    """A state directory that cannot be used; the message says why and what to do."""


def known(directory: Path, name: str) -> bool:
    """Whether the store of this name was here before.

    Raises:
        IdentityError: The directory is missing, or another store's.
        OSError: It cannot be read.
    """
    if not directory.is_dir():
        raise IdentityError(f"there is no state directory {directory}; create it or correct disk-state-directory")
    path = directory / IDENTITY_NAME
    try:
        owner = json.loads(path.read_bytes())["store"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        aside = path.with_name(f"{IDENTITY_NAME}.damaged")
        path.rename(aside)
        return True
    if owner != name:
        raise IdentityError(
            f"{directory} is the state directory of store {owner!r}, not of {name!r}; use another one, or remove {path}"
        )
    return True


def note(directory: Path, name: str) -> None:
    """Note that the store of this name is here, durably. Raises OSError."""
    path = directory / IDENTITY_NAME
    if path.exists():
        return
    draft = path.with_suffix(".new")
    with draft.open("wb") as file:
        file.write(json.dumps({"store": name}).encode())
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync_directory(directory)
