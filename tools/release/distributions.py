"""Build the distributions of a release: the wheel and the archive of the sources. Equal sources give equal bytes."""

import hashlib
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

import attrs

from tests.support.tree import ROOT

DIST: Final = ROOT / "dist"
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SERIES: Final = "Programming Language :: Python :: "


@attrs.frozen
class Distributions:
    wheel: Path
    sources: Path

    @property
    def files(self) -> tuple[Path, Path]:
        return self.wheel, self.sources

    def members(self) -> list[str]:
        """Return the names of the files in the wheel, sorted."""
        with zipfile.ZipFile(self.wheel) as content:
            return sorted(content.namelist())


def build(folder: Path = DIST, *, sources: bool = True, python: str = sys.executable) -> Distributions:
    """Build into a folder; return the files. `sources` is false: only the wheel. Raises CalledProcessError.

    `python` is that of an environment with hatchling.
    """
    targets = ["-t", "wheel", *(("-t", "sdist") if sources else ())]
    command = [python, "-m", "hatchling", "build", "-d", str(folder), *targets]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
    stem = f"stablecast-{PROJECT['version']}"
    return Distributions(folder / f"{stem}-py3-none-any.whl", folder / f"{stem}.tar.gz")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def series() -> list[str]:
    """Return the series of Python that the project declares, the oldest first: 3.11, 3.12, ..."""
    declared = (one.removeprefix(SERIES) for one in PROJECT["classifiers"] if one.startswith(SERIES))
    return sorted((one for one in declared if one[-1].isdigit()), key=lambda one: int(one.partition(".")[2]))
