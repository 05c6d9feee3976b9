"""`stablecast verify`: files, and the traces of directories."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from stablecast.trace import TraceError
from stablecast.trace.command import run_verify


def run(paths: Iterable[Path], as_json: bool) -> int:
    """Judge traces; returns the exit status. Raises TraceError for a directory without traces."""
    return run_verify(list(_files(paths)), as_json)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        traces = sorted(path.glob("*.sct"))
        if not traces:
            raise TraceError(f"there are no traces (*.sct) in the directory {path}")
        yield from traces
