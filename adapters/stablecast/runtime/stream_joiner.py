"""The receiver's side of a source's TCP stream: it joins, and joins again after a broken connection.

The greeting shows whether the port still belongs to the expected life of the source, because another life may listen
there after a restart. A refused connection, or the greeting of another session, means that the life is over. Every
other end concerns only the connection: the joiner joins again, at most once in `RETRY_SECONDS`.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from stablecast.runtime import tls
from stablecast.runtime.address import parse_place
from stablecast.runtime.stream import Item, StreamReader
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run

RETRY_SECONDS = 0.2
"""Time from one attempt to join to the next."""

JOIN_SECONDS = 5.0
"""Time limit of one attempt. After a long partition the kernel would repeat its request only once a minute."""


class StreamJoiner:
    """One joined stream. `on_items` gets the items after the greeting, `on_end(gone)` each end of the connection.

    After `on_end(True)` the joiner has given up; otherwise it joins again by itself. All callbacks may call the joiner.
    """

    def __init__(
        self,
        transport: str,
        session_id: int | None,
        on_items: Callable[[int, list[Item]], None],
        on_end: Callable[[bool], None],
    ) -> None:
        """Join `transport`; `session_id` None accepts any life there. `on_items` also gets the session id."""
        self.transport = transport
        self._expected = session_id
        self._on_items = on_items
        self._on_end = on_end
        self._reader: StreamReader | None = None
        self._over = False
        self._paused = False
        self._bytes = self._messages = 0
        self._task = asyncio.get_running_loop().create_task(self._run())

    def claim(self, topic: int) -> None:
        """Do nothing: a stream has one topic."""

    def pause(self) -> None:
        """Stop reading until `resume`."""
        self._paused = True
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        """Continue to read after `pause`."""
        self._paused = False
        if self._reader is not None:
            self._reader.resume()

    def statistics(self) -> dict[str, int]:
        """Return the bytes and messages received since the joiner was created."""
        octets, messages = self._bytes, self._messages
        if self._reader is not None:
            octets, messages = octets + self._reader.bytes_rcved, messages + self._reader.messages_rcved
        return {"bytes_rcved": octets, "lbmc_msgs_rcved": messages}

    async def close(self) -> None:
        """Leave, and wait until no task is left."""
        self.abandon()
        await asyncio.gather(self._task, return_exceptions=True)

    def abandon(self) -> None:
        """Leave; neither `on_items` nor `on_end` is called afterwards."""
        self._over = True
        if self._reader is not None:
            self._reader.abort()
        self._task.cancel()

    async def _run(self) -> None:
        host, port = parse_place(self.transport)  # The loop looks a host up at each attempt.
        loop = asyncio.get_running_loop()
        while not self._over:
            started = loop.time()
            await self._stay_joined(host, port)
            if not self._over:
                await asyncio.sleep(RETRY_SECONDS - (loop.time() - started))

    async def _stay_joined(self, host: str, port: int) -> None:
        reader = self._reader = StreamReader(self._on_greeting)
        connected = False
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await asyncio.get_running_loop().create_connection(lambda: reader, host, port, ssl=tls.client())
            connected = True
            if self._paused:
                reader.pause()
            await reader.ended.wait()
        except ConnectionRefusedError:
            self._finish()
        except OSError:
            return  # Unreachable: the life may go on, so the joiner tries again.
        finally:
            self._reader = None
            self._bytes += reader.bytes_rcved
            self._messages += reader.messages_rcved
            reader.abort()
            if connected:  # A connection cancelled while it was made may never report its end.
                await reader.ended.wait()
        if not self._over:
            self._on_end(False)

    def _on_greeting(self, items: list[Item]) -> None:
        """Accept the stream if its greeting is of the expected life; else leave it."""
        reader = self._reader
        if reader is None:
            return
        session_id = None if isinstance(items[0], Run) else codec.session_of(items[0])
        if session_id is not None and self._expected in (None, session_id):
            self._expected = session_id
            reader.on_items = partial(self._on_items, session_id)
            if rest := items[1:]:
                reader.on_items(rest)
            return
        reader.abort()
        if session_id is not None:
            self._finish()

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._on_end(True)
