"""The time from the start of a process until a person or a program can use it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tools.bench.scenario import Figures, Options, Scenario

PROGRAM: Final = (sys.executable, "-m", "stablecast.cli.main")
USABLE: Final = """
import time
from stablecast.client import Context
import asyncio
async def main():
    started = time.perf_counter()
    async with Context() as context:
        print(time.perf_counter() - started)
asyncio.run(main())
"""


def _compiled() -> dict[str, str]:
    """Return an environment in which Python caches compiled modules, as for installed programs."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _ms(*command: str) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=_compiled())
    return (time.perf_counter() - started) * 1e3


def interpreter(_options: Options, _directory: Path) -> Figures:
    """Measure an empty Python program."""
    return {"nothing": _ms(sys.executable, "-c", "pass")}


def stablecast(_options: Options, directory: Path) -> Figures:
    """Measure `--help`, a store until it is ready, and a context after its import."""
    started = time.perf_counter()
    command = [*PROGRAM, "store", str(directory), "--listen", "127.0.0.1:0", "--new", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_compiled()) as store:
        assert store.stdout is not None
        line = json.loads(store.stdout.readline())
        ready = (time.perf_counter() - started) * 1e3
        store.terminate()
    assert line["ready"]
    usable = subprocess.run([sys.executable, "-c", USABLE], check=True, capture_output=True, text=True, env=_compiled())
    return {"help": _ms(*PROGRAM, "--help"), "store": ready, "context": float(usable.stdout) * 1e3}


def startup(_: Options) -> Scenario:
    return Scenario(
        "start",
        "from the start of the process; a context from the end of its import",
        "",
        {"python": interpreter, "stablecast": stablecast},
        {
            "nothing": "an empty program, ms",
            "help": "stablecast --help, ms",
            "store": "a store is ready, ms",
            "context": "a context can be used, ms",
        },
    )
