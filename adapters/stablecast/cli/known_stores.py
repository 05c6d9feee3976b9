"""The stores that a cluster of files has had: a file in its directory keeps their names.

Such a store is no new one when its files are gone. It has messages to get back, which others count on.
"""

import json
from pathlib import Path

from stablecast.core.errors import ConfigError
from stablecast.runtime import durable_files, machine
from stablecast.text.json_text import from_json

FILE = "stores.json"


def read(directory: Path) -> frozenset[str]:
    """Return the names of the stores that have run; none if there was no run.

    Raises:
        ConfigError: The file is damaged. To take it for an empty one would hide what a store has lost.
        OSError: The file cannot be read.
    """
    path = directory / FILE
    try:
        names = from_json(machine.files.read_bytes(path))
    except FileNotFoundError:
        return frozenset()
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{path} is damaged: remove it if every store of this cluster is new or has its files")
    return frozenset(names)


def write(directory: Path, names: frozenset[str]) -> None:
    """Keep the names for later runs. Raises OSError."""
    durable_files.write(directory / FILE, json.dumps(sorted(names)).encode() + b"\n")
