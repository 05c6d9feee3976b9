"""What a release is made of: locked tools and libraries, their licences, and the list of them that is published."""

import importlib.metadata
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT
from tools.release.distributions import PROJECT, Distributions, build
from tools.release.environments import Environment, ReleaseError, fresh

LOCKED: Final = ROOT / "packaging" / "locked"
RUNTIME, BUILD = LOCKED / "runtime.txt", LOCKED / "build.txt"
SBOM: Final = ROOT / "build" / "sbom" / f"stablecast-{PROJECT['version']}.cdx.json"

PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: ; (.+?))?(?: \\)?$", re.MULTILINE)
"""A line of a locked file: name, version, and the platforms that need it."""

ALLOWED: Final = frozenset(
    {"Apache-2.0", "Apache-2.0 AND MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT OR Apache-2.0", "PSF-2.0"}
)
"""Licences under which a library may be shipped with Apache-2.0: they ask for their text and a name, no more."""

CALLED: Final = {
    "Apache 2.0": "Apache-2.0",
    "MIT License": "MIT",
    "ISC License": "ISC",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
}
"""What libraries call a licence that state no expression."""


def pins(file: Path) -> dict[str, str]:
    """Return the version of each library that a file locks."""
    return {name: version for name, version, _ in PIN.findall(file.read_text(encoding="utf-8"))}


def licence(name: str) -> str:
    """Return the licence that an installed library states, as an expression where it is known."""
    stated = importlib.metadata.metadata(name).json
    kinds = [one for one in stated.get("classifier", ()) if one.startswith("License ::")]
    found = str(stated.get("license_expression") or stated.get("license") or (kinds or [""])[0])
    return CALLED.get(found, found)


def licences() -> Iterator[str]:
    """Yield a line for each library that an installation here brings. Raises ReleaseError."""
    wrong = []
    for name in pins(RUNTIME):
        try:
            found = licence(name)
        except importlib.metadata.PackageNotFoundError:  # Another platform needs it.
            continue
        yield f"{name} {importlib.metadata.version(name)}: {found}"
        if found not in ALLOWED:
            wrong.append(name)
    if wrong:
        raise ReleaseError(f"licences that are not allowed: {', '.join(wrong)}; see ALLOWED in {Path(__file__).name}")


def published() -> Distributions:
    """Build with locked tools, and list what an installation brings. Raises ReleaseError."""
    with tempfile.TemporaryDirectory() as folder:
        tools = _locked(Path(folder) / "tools", BUILD)
        made = build(python=str(tools.programs / "python"))
        users = _locked(Path(folder) / "users", RUNTIME)
        users.install("--no-deps", str(made.wheel))
        SBOM.parent.mkdir(parents=True, exist_ok=True)
        told = ("--output-reproducible", "--output-format", "JSON", "--output-file", str(SBOM))
        tools.run("cyclonedx-py", "environment", str(users.programs / "python"), *told)
    return made


def _locked(folder: Path, file: Path) -> Environment:
    made = fresh(folder, sys.executable)
    made.install("--require-hashes", "--only-binary", ":all:", "--requirement", str(file))
    return made
