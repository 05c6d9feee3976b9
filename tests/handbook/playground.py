"""Build the page that runs the core in the browser."""

from pathlib import Path


def build(output: Path) -> None:
    """Write the page into a folder."""
