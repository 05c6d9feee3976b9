"""The lines of a file or of standard input, as they come."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator

CHUNK_BYTES = 64 * 1024
"""Bytes taken at one time."""


async def lines(descriptor: int) -> AsyncIterator[bytes]:
    """Each line without its end, as soon as it is there. Raises OSError."""
    rest = b""
    while chunk := await _read(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def _read(descriptor: int) -> bytes:
    """What is there, at least a byte, or nothing at the end.

    In a daemon thread: a terminal that says nothing must not keep an interrupted program from ending.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[bytes] = loop.create_future()

    def settle(chunk: bytes, error: OSError | None) -> None:
        if arrived.done():
            return
        if error is None:
            arrived.set_result(chunk)
        else:
            arrived.set_exception(error)

    def read() -> None:
        chunk, failure = b"", None
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except OSError as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, chunk, failure)

    threading.Thread(target=read, name="lines", daemon=True).start()
    return await arrived
