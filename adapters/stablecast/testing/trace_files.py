"""The traces of a failing world, as files of this machine."""

from pathlib import Path, PurePath

from stablecast.testing.world_run import Outcome


def write_traces(outcome: Outcome, directory: Path) -> int:
    """Write the traces of all hosts to one directory, as the tools for traces want them; return their number."""
    traces = {
        f"{host}-{PurePath(path).name}": content
        for host, backup in outcome.traces.items()
        for path, _, content in backup.files
        if isinstance(content, bytes)
    }
    if traces:
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob("*.sct"):
            old.unlink()
    for name, content in traces.items():
        (directory / name).write_bytes(content)
    return len(traces)
