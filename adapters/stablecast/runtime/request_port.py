"""The request port: where peers connect to tell a context or a store something."""

import asyncio
import socket
from collections.abc import Callable

from stablecast.runtime import ports, tls
from stablecast.runtime.stream import Item, StreamReader

MAX_PEERS = 4096
"""Connections to one request port; one more is hung up on."""

MAX_CONTEXTS = 16
"""Contexts that one connection speaks for; a process has one, and a connection of its own."""


class RequestPort:
    """Accepts peers and hands over what they say; `malformed` counts those that talked nonsense."""

    def __init__(
        self,
        listening: socket.socket,
        on_items: Callable[[list[Item], "Peer"], None],
        on_left: Callable[["Peer"], None] | None = None,
    ) -> None:
        """Serve peers on a listening socket, which is ours from now on. `on_left` is told whose connection ended."""
        self._listening = listening
        self._on_items = on_items
        self._on_left = on_left
        self._peers: set[Peer] = set()
        self._server: asyncio.Server | None = None
        self._closed = False
        self.malformed = 0

    def __len__(self) -> int:
        """How many peers are connected."""
        return len(self._peers)

    async def start(self) -> None:
        """Accept peers."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._accept,
            sock=self._listening,
            start_serving=False,
            ssl=tls.server(),
            ssl_handshake_timeout=tls.handshake(),
        )
        await self._server.start_serving()

    async def close(self) -> None:
        """Stop accepting and hang up."""
        self._closed = True
        if self._server is None:
            self._listening.close()
            return
        await ports.close(self._server)
        for peer in tuple(self._peers):
            await peer.close()
        await self._server.wait_closed()

    def _accept(self) -> "Peer":
        return Peer(self._on_items, self._left, self._made)

    def _made(self, peer: "Peer") -> None:
        """Connected, and with TLS who it is known: before that nobody takes a place.

        Who was accepted just before the port was closed comes here after it.
        """
        if self._closed or len(self._peers) >= MAX_PEERS:
            peer.abort()
        self._peers.add(peer)

    def _left(self, peer: "Peer") -> None:
        self._peers.discard(peer)
        self.malformed += bool(peer.error)
        if self._on_left is not None:
            self._on_left(peer)


class Peer(StreamReader):
    """One connection to the port. `contexts` are those that said over it that they live, oldest first."""

    def __init__(
        self,
        on_items: Callable[[list[Item], "Peer"], None],
        on_left: Callable[["Peer"], None],
        on_made: Callable[["Peer"], None] = lambda _: None,
    ) -> None:
        """A connection that is not made yet; `on_made` is told when it is, `on_left` when it has ended."""
        super().__init__(lambda items: on_items(items, self), series=True)
        self.contexts: list[int] = []
        self._on_made = on_made
        self._on_left = on_left

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """It is there."""
        super().connection_made(transport)
        self._on_made(self)

    def alive(self, context: int) -> None:
        """A context said that it lives; of one too many nothing is remembered."""
        if context not in self.contexts and len(self.contexts) < MAX_CONTEXTS:
            self.contexts.append(context)

    def connection_lost(self, exc: Exception | None) -> None:
        """It ended."""
        super().connection_lost(exc)
        self._on_left(self)
