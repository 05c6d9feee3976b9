"""Files that the site serves and that others wrote: fetched once, verified by their hashes, never committed.

They come from the registries of npm and PyPI. The built site asks no other host for anything.
"""

import base64
import hashlib
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from tests.support.tree import ROOT

CACHE: Final = ROOT / "build" / "downloads"
SECONDS: Final = 300
"""Time limit of one download."""


@attrs.frozen
class NpmPackage:
    """A package of npm with the SHA-512 that its registry publishes, and the files that the site serves."""

    name: str
    version: str
    sha512: str
    files: Sequence[str]

    @property
    def address(self) -> str:
        return f"https://registry.npmjs.org/{self.name}/-/{self.name}-{self.version}.tgz"


MERMAID: Final = NpmPackage(
    "mermaid",
    "12.3.0",
    "4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw==",
    ("dist/mermaid.min.js",),
)
"""Draws the diagrams of the specification, which are text."""

PYODIDE: Final = NpmPackage(
    "pyodide",
    "0.29.5",
    "TkYrUv9m8QmfImADKRmpwZulL48E0uUaBSO+dvRQKyAJc0qh9gu7jn8btyHPh3NZm1r2IH2YrJhIr7Q2B9urAw==",
    ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"),
)
"""Python 3.13 for browsers."""

WHEELS: Final = ("attrs", "cattrs", "python-statemachine", "typing-extensions")
"""Libraries of the core and the simulator, all pure Python."""


def unpacked(package: NpmPackage) -> list[Path]:
    """Return the wanted files of a package; fetch it first if it is not in the cache. Raises OSError."""
    folder = CACHE / f"{package.name}-{package.version}"
    paths = [folder / file for file in package.files]
    if not all(path.is_file() for path in paths):
        archive = CACHE / f"{package.name}-{package.version}.tgz"
        CACHE.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(package.address, timeout=SECONDS) as answer:
            data = answer.read()
        found = base64.b64encode(hashlib.sha512(data).digest()).decode()
        if found != package.sha512:
            raise OSError(f"{package.address} has the SHA-512 {found}, not {package.sha512}: do not use it")
        archive.write_bytes(data)
        with tarfile.open(archive) as content:
            for file, path in zip(package.files, paths, strict=True):
                member = content.extractfile(f"package/{file}")
                assert member is not None, file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(member.read())
        archive.unlink()
    return paths


def wheels() -> list[Path]:
    """Return the wheels of the libraries that the core needs; fetch those that are not in the cache.

    Raises OSError when a registry does not answer.
    """
    folder = CACHE / "wheels"
    found = sorted(folder.glob("*.whl"))
    if len(found) != len(WHEELS):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]
        if subprocess.run([*command, folder, *WHEELS], check=False).returncode:
            raise OSError(f"pip cannot download {', '.join(WHEELS)}: connect to a package index, or use --pages")
        found = sorted(folder.glob("*.whl"))
    return found
