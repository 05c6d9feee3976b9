"""A checker that is none: a `java` on the path that says and dumps what it is told to."""

import sys
from pathlib import Path

import pytest

VERSION = "TLC2 Version 1 of Day Month 20?? (rev: none)"
CLEAN = f"{VERSION}\nModel checking completed. No error has been found.\n"


def install(directory: Path, monkeypatch: pytest.MonkeyPatch, says: str, dumps: str = "") -> Path:
    """Put it on the path; returns what to give as the jar."""
    (directory / "says").write_text(says)
    (directory / "dumps").write_text(dumps)
    program = directory / "java"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        f"here = pathlib.Path({str(directory)!r})\n"
        "if '-dump' in sys.argv:\n"
        "    pathlib.Path(sys.argv[sys.argv.index('-dump') + 2]).write_text((here / 'dumps').read_text())\n"
        "print((here / 'says').read_text(), end='')\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))
    jar = directory / "checker.jar"
    jar.touch()
    return jar
