"""`stablecast verify`: files, directories and patterns of traces."""

from pathlib import Path

from stablecast.trace.command import Wanted, run_verify


def run(paths: list[Path], as_json: bool, master: str | None, report: Path | None, parquet: Path | None) -> int:
    """Judge traces; returns the exit status."""
    return run_verify(paths, Wanted(as_json, master, report, parquet))
