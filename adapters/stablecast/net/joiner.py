"""Joining a source's stream and staying joined.

The greeting tells whether the port still belongs to the life of the source that was meant: after a restart another life
may listen there. A refused connection, or another session's greeting, means that the life is over.
"""

import asyncio
from collections.abc import Callable

from stablecast.net.address import parse
from stablecast.net.stream import Item, StreamReader
from stablecast.transports import codec
from stablecast.transports.lbttcp import Run

RETRY_SECONDS = 0.2
"""Pause between attempts to join while the source can not be reached for another reason than refusal."""


class Joiner:
    """One joined stream. `on_items` gets what arrives after the greeting; `on_end(gone)` every end of the connection.

    After `on_end(True)` the joiner has given up; otherwise it joins again by itself.
    """

    def __init__(
        self,
        transport: str,
        session_id: int | None,
        on_items: Callable[[int, list[Item]], None],
        on_end: Callable[[bool], None],
    ) -> None:
        """Join `transport`; `session_id` None takes whatever life listens there. `on_items` is told the session id."""
        self.transport = transport
        self._expected = session_id
        self._on_items = on_items
        self._on_end = on_end
        self._reader: StreamReader | None = None
        self._ended = asyncio.Event()
        self._over = False
        self._paused = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def pause(self) -> None:
        """Read no more for now."""
        self._paused = True
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        """Read on."""
        self._paused = False
        if self._reader is not None:
            self._reader.resume()

    async def close(self) -> None:
        """Leave, and wait until nothing is left running."""
        self.abandon()
        await asyncio.gather(self._task, return_exceptions=True)

    def abandon(self) -> None:
        """Leave; `on_end` is not called any more."""
        self._over = True
        self._task.cancel()
        if self._reader is not None:
            self._reader.close()

    async def _run(self) -> None:
        host, port = parse(self.transport)
        loop = asyncio.get_running_loop()
        while not self._over:
            self._ended.clear()
            session = _Session(self)
            reader = StreamReader(session.on_items, session.on_end)
            try:
                await loop.create_connection(lambda reader=reader: reader, host, port)  # type: ignore[misc]
            except ConnectionRefusedError:
                self._finish()
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._reader = reader
                if self._paused:
                    reader.pause()
                await self._ended.wait()
                self._reader = None

    def take(self, session_id: int, items: list[Item]) -> None:
        """Hand over what arrived."""
        if not self._over:
            self._on_items(session_id, items)

    def greeted(self, session_id: int) -> bool:
        """Whether the life that listens there is the one that was meant; if not, the joiner is over."""
        if self._expected is None or session_id == self._expected:
            self._expected = session_id
            return True
        self._finish()
        return False

    def ended(self) -> None:
        """The connection ended."""
        self._ended.set()
        if not self._over:
            self._on_end(False)

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            if self._reader is not None:
                self._reader.close()
            self._on_end(True)


class _Session:
    """One connection of a joiner: first the greeting, then the rest."""

    def __init__(self, joiner: Joiner) -> None:
        self._joiner = joiner
        self._session_id: int | None = None

    def on_items(self, items: list[Item]) -> None:
        if self._session_id is None:
            first = items[0]
            session_id = None if isinstance(first, Run) else codec.session_of(first)
            if session_id is None or not self._joiner.greeted(session_id):
                self._joiner.ended()
                return
            self._session_id = session_id
            items = items[1:]
        if items:
            self._joiner.take(self._session_id, items)

    def on_end(self, _error: str | None) -> None:
        self._joiner.ended()
