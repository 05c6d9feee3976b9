"""The request port: where peers connect to tell a context or a store something."""

import asyncio
import socket
from collections.abc import Callable

from stablecast.net.stream import Item, StreamReader

MAX_PEERS = 4096
"""Connections to one request port; one more is hung up on."""


class RequestPort:
    """Accepts peers and hands over what they say; `malformed` counts those that talked nonsense."""

    def __init__(self, listening: socket.socket, on_items: Callable[[list[Item]], None]) -> None:
        """Serve peers on a listening socket, which is ours from now on."""
        self._listening = listening
        self._on_items = on_items
        self._peers: set[_Peer] = set()
        self._server: asyncio.Server | None = None
        self.malformed = 0

    async def start(self) -> None:
        """Accept peers."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, sock=self._listening, start_serving=False)
        await self._server.start_serving()

    async def close(self) -> None:
        """Stop accepting and hang up."""
        if self._server is None:
            self._listening.close()
            return
        self._server.close()
        for peer in tuple(self._peers):
            await peer.close()
        await self._server.wait_closed()

    def _accept(self) -> "_Peer":
        peer = _Peer(self._on_items, self._left)
        if len(self._peers) >= MAX_PEERS:
            peer.abort()
        self._peers.add(peer)
        return peer

    def _left(self, peer: "_Peer") -> None:
        self._peers.discard(peer)
        self.malformed += bool(peer.error)


class _Peer(StreamReader):
    """A reader that tells when it ended."""

    def __init__(self, on_items: Callable[[list[Item]], None], on_left: Callable[["_Peer"], None]) -> None:
        super().__init__(on_items)
        self._on_left = on_left

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_left(self)
