"""The request port: where peers connect to tell a context something."""

import asyncio
import socket
from collections.abc import Callable

from stablecast.net.stream import Item, StreamReader


class RequestPort:
    """Accepts peers and hands over what they say."""

    def __init__(self, listening: socket.socket, on_items: Callable[[list[Item]], None]) -> None:
        """Serve peers on a listening socket."""
        self._listening = listening
        self._on_items = on_items
        self._readers: set[StreamReader] = set()
        self._server: asyncio.Server | None = None
        self.malformed = 0

    async def start(self) -> None:
        """Accept peers."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, sock=self._listening)

    async def close(self) -> None:
        """Stop accepting and hang up."""
        if self._server is None:
            self._listening.close()
            return
        self._server.close()
        for reader in tuple(self._readers):
            reader.close()
        await self._server.wait_closed()

    def _accept(self) -> StreamReader:
        def ended(error: str | None) -> None:
            self._readers.discard(reader)
            self.malformed += error is not None

        reader = StreamReader(self._on_items, ended)
        self._readers.add(reader)
        return reader
