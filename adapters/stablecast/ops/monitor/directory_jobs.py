"""Run scrub and export on a store's directory in a process of their own.

The process reads the files as `stablecast store scrub DIR` and `export DIR` do, so the store does none of the work.
"""

import asyncio
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from typing import IO, Any

from aiohttp import web

PIECE_BYTES = 64 * 1024
"""Bytes of one read from the process."""
OPTIONS = {"scrub": (), "export": ("source", "first", "last", "since", "until")}
"""Options that each command accepts. All are whole numbers or instants, none is a path."""
NICE = ("nice", "-n", "10")
TYPES = {"scrub": "application/json", "export": "application/zstd"}


class DirectoryJobs:
    """Run at most one job at a time, because the store needs the disk more."""

    def __init__(self) -> None:
        self._busy = asyncio.Lock()

    async def run(self, request: web.Request, directory: str, given: Mapping[str, Any]) -> web.StreamResponse:
        """Run the job and send its output. Raises HTTPConflict and HTTPBadRequest."""
        errand = request.match_info["errand"]
        arguments = command(errand, directory, given)
        if self._busy.locked():
            raise web.HTTPConflict(text="another scrub or export is running\n")
        async with self._busy:
            # A file, not a pipe: a pipe that nobody reads would fill up and block the process.
            with tempfile.TemporaryFile() as told:
                process = await asyncio.create_subprocess_exec(*arguments, stdin=DEVNULL, stdout=PIPE, stderr=told)
                try:
                    return await _pass_on(request, process, told, TYPES[errand])
                finally:
                    if process.returncode is None:
                        process.kill()
                        await process.wait()


def command(errand: str, directory: str, given: Mapping[str, Any]) -> Sequence[str]:
    """Return the command line. Raises HTTPBadRequest for an unknown option.

    >>> command("export", "d", {"source": 5})[-5:]
    ('d', '--output', '-', '--source', '5')
    """
    line = [*NICE, sys.executable, "-m", "stablecast.cli.main", "store", errand, directory]
    line += ["--output", "-"] if errand == "export" else ["--json"]
    for name, value in given.items():
        if name not in OPTIONS[errand] or not str(value).isprintable() or str(value).startswith("-"):
            raise web.HTTPBadRequest(text=f"'{name}' is no option of {errand}, or its value is not valid\n")
        line += [f"--{name}", str(value)]
    return tuple(line)


async def _pass_on(request: web.Request, process: Process, told: IO[bytes], kind: str) -> web.StreamResponse:
    assert process.stdout is not None
    first = await process.stdout.read(PIECE_BYTES)
    if not first:
        status = await process.wait()
        told.seek(0)
        said = told.read(PIECE_BYTES).decode(errors="replace").strip()
        raise web.HTTPBadRequest(text=f"{said or f'the process ended with status {status} and no message'}\n")
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    piece = first
    while piece:
        await response.write(piece)
        piece = await process.stdout.read(PIECE_BYTES)
    await process.wait()
    return response
