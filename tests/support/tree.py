"""The project's own files, for tests about them, and the path on which its packages are found."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("core", "transports", "adapters")
"""The code folders, innermost first: each may import itself and the folders before it."""

FAULTY = "STABLECAST_FAULTY"
"""Environment variable that names the folder with the copy of a package in which `tools.mutants` planted a fault."""

PYTHON_PATH = os.pathsep.join(
    [*filter(None, [os.environ.get(FAULTY)]), str(ROOT), *(str(ROOT / layer) for layer in LAYERS)]
)
"""PYTHONPATH of a child process that imports `stablecast` and `tests`; the copy with a planted fault comes first."""

_FOLDERS = (*LAYERS, "tests", "tools", "examples", "handbook", "spec", "tla", ".ci")
_BINARY = frozenset({".pyc", ".so", ".png", ".gz", ".zst", ".pcap", ".pcapng", ".jar", ".seg", ".sct", ".webp"})


def layer_packages() -> dict[str, str]:
    """Return the layer of each package below `stablecast`, by package name."""
    return {folder.name: layer for layer in LAYERS for folder in package_folders(layer)}


def package_folders(layer: str) -> list[Path]:
    """Return the folders of the packages that one layer contributes to `stablecast`."""
    portion = ROOT / layer / "stablecast"
    return sorted(p for p in portion.glob("*") if p.is_dir() and p.name != "__pycache__")


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below the named folders of the project, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files() -> Iterator[Path]:
    """Yield every text file of the project that a person wrote."""
    made = (".git/", ".coverage")  # `.git` is a file in a worktree.
    yield from sorted(p for p in ROOT.iterdir() if p.is_file() and not f"{p.name}/".startswith(made))
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix not in _BINARY and "__pycache__" not in path.parts:
                yield path


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
