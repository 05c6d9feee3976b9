"""Build the page that runs the shipped core in the browser: its files, Pyodide, and one archive with all modules.

The archive has the modules that a world imports, as they are installed, and nothing else. Nothing is compiled. A
snapshot of the memory of a Python that has imported them makes the page start sooner.
"""

import re
import shutil
import zipfile
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT
from tools.site import downloads, snapshot

PAGE: Final = ROOT / "handbook" / "play"
ARCHIVE: Final = "stablecast.zip"
UNUSED: Final = re.compile(
    r"stablecast/(?:cli|ops|resolver|sync|testing|typed|lab/(?!sim|reduction|__init__)"
    r"|evidence/(?:capture|spark|verification|whatif))/"
)
"""Modules that no simulated world imports; without them the page loads sooner."""

LIBRARIES: Final = ("attr", "attrs", "cattr", "cattrs", "statemachine", "typing_extensions")
"""Packages of others that the archive holds; all other modules are Python's own, or stand-ins."""


def build(output: Path) -> None:
    shutil.rmtree(output, ignore_errors=True)
    shutil.copytree(PAGE, output, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    for path in downloads.unpacked(downloads.PYODIDE):
        shutil.copy(path, output)
    pack(output / ARCHIVE)
    if not snapshot.save(output):
        print("Chromium is missing, so the page starts without a snapshot of its memory, and later: install chromium.")


def pack(archive: Path) -> None:
    """Write the archive with the page's Python module, the core, the simulator and their libraries."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.write(PAGE / "page.py", "page.py")
        for layer in ("core", "transports", "adapters"):
            for path in sorted((ROOT / layer / "stablecast").rglob("*")):
                name = path.relative_to(ROOT / layer).as_posix()
                if path.suffix in (".py", ".toml") and not UNUSED.match(name):
                    made.write(path, name)
        for wheel in downloads.wheels():
            with zipfile.ZipFile(wheel) as content:
                for name in content.namelist():
                    if name.partition("/")[0].partition(".")[0] in LIBRARIES:
                        made.writestr(name, content.read(name))
