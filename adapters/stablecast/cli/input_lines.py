"""Read lines from a file descriptor without blocking the event loop."""

import asyncio
from collections.abc import AsyncIterator

from stablecast.runtime import machine

CHUNK_BYTES = 64 * 1024
"""Most bytes of one read."""


async def lines(descriptor: int) -> AsyncIterator[bytes]:
    """Yield each line without its end, as soon as it arrives. Raises OSError."""
    rest = b""
    while chunk := await _read(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def _read(descriptor: int) -> bytes:
    """Return at least one byte, or b"" at the end of the file."""
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
            chunk = machine.files.read(descriptor, CHUNK_BYTES)
        except OSError as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, chunk, failure)

    # The process may end before this thread: a terminal without input must not keep an interrupted program alive.
    machine.threads.start("lines", read)
    return await arrived
