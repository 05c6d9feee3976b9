"""Run the shipped core in a browser: stand-ins for what a browser lacks, and one function for the page.

The simulator uses no socket, file or thread. Modules that it imports have names for them, which are never called here.
`stablecast.client` is a package without its `__init__`, which would load the whole client.
"""

import importlib.machinery
import json
import os
import sys
import time
import types
from typing import Any

ABSENT = ("fcntl", "msgspec", "resource", "ssl", "termios", "uvloop", "zstandard")
"""Modules that no browser has, and that no world calls."""


def _refuse(*_: Any, **__: Any) -> Any:
    raise OSError("a browser has no files, sockets and threads")


class _StandIn(types.ModuleType):
    """A module whose names exist and do nothing."""

    __path__: list[str] = []  # noqa: RUF012 - the machinery of imports reads it from the module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


class _Finder:
    """Find the modules that are absent."""

    def find_spec(self, name: str, *_: Any) -> Any:
        return importlib.machinery.ModuleSpec(name, self) if name.partition(".")[0] in ABSENT else None  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave the module empty."""


def prepare(folder: str) -> None:
    """Put the stand-ins into place; `folder` has the packages."""
    for owner, names in ((os, ("pwritev", "posix_fallocate", "fdatasync", "sched_yield")), (time, ("thread_time",))):
        for name in names:
            if not hasattr(owner, name):
                setattr(owner, name, _refuse)
    sys.meta_path.append(_Finder())  # type: ignore[arg-type] # an older protocol of finders
    client = types.ModuleType("stablecast.client")
    client.__path__ = [f"{folder}/stablecast/client"]
    sys.modules["stablecast.client"] = client


if sys.platform == "emscripten":
    prepare("/stablecast")

from stablecast.lab.sim import frames  # noqa: E402 - after the stand-ins
from stablecast.lab.sim.schedule import Schedule, draw  # noqa: E402


def film(world: str) -> str:
    """Return the film of a world as JSON. The world is a schedule as JSON, or `{"drawn": SEED}`."""
    wanted = json.loads(world)
    schedule = draw(wanted["drawn"], wipe=False) if "drawn" in wanted else Schedule.from_json(wanted)
    return json.dumps(frames.film(schedule).as_json())
