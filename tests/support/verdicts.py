"""Verdicts that are kept: what was shown of the very same text need not be shown again.

`tla/verdicts.json` has a digest for each verdict: of what it was given, and of every file that the shown code imports.
Of a file in which no function ran, only what stands outside of functions counts.

`make verdicts` shows again only what changed, and writes the file; `make verdicts ARGS=all` shows everything for it.
`STABLECAST_VERDICTS=none` shows everything and writes nothing, as `make test-all` does.
"""

import ast
import cProfile
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs

from tests.support.tree import ROOT

KEPT: Final = ROOT / "tla" / "verdicts.json"
MODE: Final = os.environ.get("STABLECAST_VERDICTS", "read")
PORTIONS: Final = ("core", "transports", "adapters")


@attrs.frozen
class Verdict:
    """One verdict, and all that decides it: texts, files, and what modules import from this tree."""

    name: str
    given: tuple[str, ...] = ()
    modules: tuple[ModuleType, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def shown(self) -> bool:
        """True if the verdict holds by the record."""
        known = _known().get(self.name)
        return MODE != "none" and known is not None and known["digest"] == self._digest(known["ran"])

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Keep the verdict if nothing is raised inside, and verdicts are being written."""
        if MODE != "write":
            yield
            return
        profile = cProfile.Profile(subcalls=False, builtins=False)  # one in C: it doubles no time
        profile.enable()
        try:
            yield
        finally:
            profile.disable()
        ran = {entry.code.co_filename for entry in profile.getstats() if not isinstance(entry.code, str)}
        mine = sorted(str(path.relative_to(ROOT)) for path in self._sources() if str(path) in ran)
        _enter(self.name, {"digest": self._digest(mine), "ran": mine})

    def _sources(self) -> list[Path]:
        return sorted({path for one in self.modules for path in _imported(Path(str(one.__file__)).resolve())})

    def _digest(self, ran: list[str]) -> str:
        state = hashlib.sha256("\0".join(self.given).encode())
        for path in self._sources():
            name = str(path.relative_to(ROOT))
            state.update(name.encode() + (_whole(path) if name in ran else _outside(path)))
        for path in self.files:
            state.update(_whole(path.resolve()))
        return state.hexdigest()


def _enter(name: str, entry: dict[str, Any]) -> None:
    with KEPT.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # parts of the tests run beside each other
        file.seek(0)
        verdicts = json.loads(file.read() or "{}") | {name: entry}
        file.truncate(0)
        file.write(json.dumps(dict(sorted(verdicts.items())), indent=1) + "\n")


@cache
def _known() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return found


@cache
def _whole(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def _outside(path: Path) -> bytes:
    """Return the digest of what stands outside of functions in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    return hashlib.sha256(ast.dump(tree).encode()).digest()


def _imported(path: Path) -> set[Path]:
    """Return a file, and the files of this tree that it imports, directly or not."""
    found, new = {path}, [path]
    while new:
        for other in _imports(new.pop()) - found:
            found.add(other)
            new.append(other)
    return found


@cache
def _imports(path: Path) -> frozenset[Path]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found for name in names for found in _files(name))


@cache
def _files(module: str) -> tuple[Path, ...]:
    """Return the files that an import of a module of this tree runs: its packages and itself."""
    parts = module.split(".")
    if parts[0] != "stablecast":
        return ()
    places = [ROOT / portion / Path(*parts[:end]) for portion in PORTIONS for end in range(2, len(parts) + 1)]
    return tuple(
        path for place in places for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()
    )
