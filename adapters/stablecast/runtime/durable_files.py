"""Small files that survive a loss of power as a whole: after it, a file has its old bytes or the new ones."""

from pathlib import Path

from stablecast.runtime import machine


def write(path: Path, data: bytes) -> None:
    """Write a file, or replace it; on return it is on disk. Raises OSError."""
    draft = path.with_suffix(".new")
    with machine.files.file(draft, "wb") as file:
        file.write(data)
        file.flush()
        machine.files.sync(file.fileno())
    machine.files.rename(draft, path)
    machine.files.sync_directory(path.parent)
