"""The child process of a test on a real machine: it runs one coroutine function, which it imports by name.

`python -m stablecast.testing.real_program` reads a job as one line of JSON from its standard input. It writes the
result of the function to a file, because the standard output belongs to the function.
"""

import asyncio
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

WORLD_ARGUMENT: Final = {"stablecast": "world"}
"""Stands for the world among the arguments of a function."""


class ProgramWorld:
    """The part of a world that its programs may use.

    Attributes:
        stores: The addresses of the stores.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.stores: list[str] = state["stores"]
        self._context: dict[str, Any] = state["context"]
        self._begun: float = state["begun"]

    @property
    def context(self) -> dict[str, Any]:
        """The keyword arguments for `stablecast.client.Context`."""
        return dict(self._context)

    def context_of(self, host: str) -> dict[str, Any]:
        """Return the same: all hosts are this machine."""
        del host
        return self.context

    def address(self, host: str) -> str:
        """Return the address of all hosts, this machine."""
        del host
        return str(self._context["interface"])

    def time(self) -> float:
        """Return the seconds since the stores were ready."""
        return time.time() - self._begun

    def note(self, text: str) -> None:
        """Print a line, which the timeline shows."""
        print(text, flush=True)  # noqa: T201 - the parent reads it


def main() -> None:
    """Run the job of the standard input."""
    job = json.loads(sys.stdin.readline())
    world = ProgramWorld(job["world"])

    def given(value: Any) -> Any:
        return world if value == WORLD_ARGUMENT else value

    function = getattr(importlib.import_module(job["module"]), job["name"])
    arguments = [given(value) for value in job["arguments"]]
    keywords = {name: given(value) for name, value in job["keywords"].items()}
    Path(job["begun"]).touch()
    result = asyncio.run(function(*arguments, **keywords))
    try:
        text = json.dumps(result)
    except TypeError:
        text = "null"
    Path(job["result"]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
