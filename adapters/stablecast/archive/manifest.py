"""The manifest of an archive: its files, how far each source is archived, and what is missing.

    orders/archive.json
    orders/day=2026-01-31/7-0.parquet          source and first number of the file
    orders/day=unknown/7-4711.parquet          messages whose time is not known

A file belongs to the archive if the manifest names it. The manifest is replaced after its files are on the disk, so a
run that was killed leaves only files without meaning, which the next run replaces.
"""

import json
import os
from pathlib import Path
from typing import Any, Self

import attrs

from stablecast.core.errors import StablecastError
from stablecast.runtime import durable_files
from stablecast.text import refusal
from stablecast.text.json_text import from_json

MANIFEST = "archive.json"
FORMAT = 1


class ArchiveError(StablecastError):
    """A folder cannot be used as an archive. The text names the folder and the reason."""


@attrs.frozen
class ArchivedFile:
    """A Parquet file of one source and day, with numbers in [first, stop).

    Attributes:
        path: Below the folder.
        payload_bytes: The sum of its payloads.
        oldest, newest: The times of its messages, in ns of the epoch; None: they have none.
    """

    path: str
    source: str
    first: int
    stop: int
    rows: int
    payload_bytes: int
    oldest: int | None
    newest: int | None


@attrs.frozen
class ArchivedHole:
    """Numbers `first` to `last` of a source were not there when their turn came."""

    first: int
    last: int
    reason: str


@attrs.define
class ArchivedSource:
    """A source: the archive has everything from `first` to below `stop` but `missing`. `life` is the newest."""

    life: str
    first: int
    stop: int
    missing: list[ArchivedHole] = attrs.field(factory=list)


@attrs.define
class Manifest:
    topic: str
    sources: dict[str, ArchivedSource] = attrs.field(factory=dict)
    files: list[ArchivedFile] = attrs.field(factory=list)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the manifest of a folder. Raises ArchiveError."""
        try:
            found = from_json((folder / MANIFEST).read_text())
        except FileNotFoundError:
            raise ArchiveError(
                f"{folder} is no archive: `stablecast archive TOPIC --output {folder}` makes one"
            ) from None
        except OSError as error:
            raise ArchiveError(f"the archive {folder} cannot be read: {refusal(error)}") from error
        except ValueError as error:
            raise ArchiveError(f"the archive {folder} cannot be read: {MANIFEST} is no JSON") from error
        try:
            return cls._of(found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArchiveError(
                f"the archive {folder} cannot be read: {MANIFEST} is damaged, or of a newer release"
            ) from error

    @classmethod
    def _of(cls, found: dict[str, Any]) -> Self:
        if found["format"] != FORMAT:
            raise ValueError(found["format"])
        sources = {
            name: ArchivedSource(
                one["life"], one["first"], one["stop"], [ArchivedHole(**hole) for hole in one["missing"]]
            )
            for name, one in found["sources"].items()
        }
        return cls(found["topic"], sources, [ArchivedFile(**one) for one in found["files"]])

    def save(self, folder: Path) -> None:
        """Replace the manifest of a folder; its files must be on the disk. Raises OSError."""
        sources = {name: attrs.asdict(source) for name, source in sorted(self.sources.items())}
        files = [attrs.asdict(file) for file in self.files]
        text = json.dumps({"format": FORMAT, "topic": self.topic, "sources": sources, "files": files}, indent=1)
        durable_files.write(folder / MANIFEST, text.encode() + b"\n")

    def within(self, source: str, first: int, stop: int) -> list[ArchivedFile]:
        """Return the files of a source that may have numbers in [first, stop), by their first number."""
        found = [one for one in self.files if one.source == source and one.first < stop and one.stop > first]
        return sorted(found, key=lambda one: one.first)

    def holes(self, source: str, first: int, stop: int) -> list[ArchivedHole]:
        """Return what is missing of [first, stop)."""
        missing = self.sources[source].missing if source in self.sources else []
        return [
            ArchivedHole(max(first, hole.first), min(stop - 1, hole.last), hole.reason)
            for hole in missing
            if hole.first < stop and hole.last >= first
        ]


def sync(path: Path) -> None:
    """Put a file, or the names of a folder, on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
