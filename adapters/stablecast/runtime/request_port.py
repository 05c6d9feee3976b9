"""The request port: the listening port at which peers send requests and answers to a context or a store."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import attrs

from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.runtime import machine, ports, tls_server
from stablecast.runtime.origins import Origin
from stablecast.runtime.routing import Routing
from stablecast.runtime.stream import Item, StreamReader
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import RetransmissionSeries, Run
from stablecast.transports.codec.routed import delivered
from stablecast.transports.wire.common_messages import ShapedMessage
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Destination
from stablecast.transports.wire.lbmc import Message

MAX_PEERS = 4096
"""Connections to one request port; one more is closed."""

FIRST_MESSAGE_SECONDS = 30.0
"""Seconds within which a new peer must have sent a whole message. Clients and stores connect to send one at once."""

MAX_CONTEXTS = 16
"""Contexts that are remembered for one connection; usually a connection serves the one context of a process."""


Found = ControlMessage | codec.Recovered | codec.RecoveredRun
"""What peers send to a request port."""


def decoded(
    items: Iterable[Item], peer: "Peer", oddities: Counter[str], routing: Routing
) -> Iterator[tuple[Found, "Peer | FarPeer"]]:
    """Yield the control messages and retransmissions of a peer in order, each with its sender.

    Count what is neither in `oddities`, and what `routing` does not believe. Addresses are those that this endpoint
    knows.
    """
    found: Found
    for item in items:
        sender: Peer | FarPeer = peer
        try:
            if item.__class__ is ShapedMessage:  # The most frequent messages have no addresses, and no other headers.
                found = codec.decode(item)
            elif isinstance(item, Run):
                oddities["data-on-request-port"] += 1
                continue
            elif any(header.__class__ is Destination for header in item.headers):
                way = routing.way_of(item, peer.origin, again=partial(peer.on_items, [item]))
                if way is None:
                    continue
                sender = FarPeer(way.origin, peer)
                found = _localised(content(delivered(item)), routing, way.domain)
            else:
                found = _localised(content(item), routing, 0)
        except WireError:
            oddities["malformed-on-request-port"] += 1
            continue
        yield found, sender


def _localised(found: Found, routing: Routing, domain: int) -> Found:
    """Return what a sender in a domain, 0 for the own one, says with the addresses that are known here."""
    if isinstance(found, codec.Recovered | codec.RecoveredRun) or not (domain or routing.domain):
        return found
    return routing.known_here(found, domain)


def content(message: Message) -> Found:
    """Return what a message carries. Raises WireError."""
    if isinstance(message, RetransmissionSeries):
        return codec.decode_series(message)
    return codec.decode_recovered(message) if message.kind in codec.RECOVERED_KINDS else codec.decode(message)


@attrs.define(eq=False)
class RequestPort:
    """Accept peers on a listening socket, which it owns, and hand over their messages.

    `kind` makes the peers, and `on_left` gets each of them whose connection ended. `malformed` counts connections with
    bytes that are no message, `silent` those that were ended because no message came in time: port scanners must not
    use up the places.
    """

    _listening: machine.Socket
    _on_items: Callable[[list[Item], "Peer"], None]
    _on_left: Callable[["Peer"], None] | None = None
    _kind: "type[Peer] | None" = None
    # A set would close them in an order that no seed repeats. The values end peers that say nothing.
    _peers: "dict[Peer, asyncio.TimerHandle]" = attrs.field(factory=dict)
    _server: ports.Server | None = None
    _closed: bool = False
    malformed: int = 0
    silent: int = 0

    def __len__(self) -> int:
        return len(self._peers)

    async def move(self, listening: machine.Socket) -> None:
        """Listen at another socket, because the host has another address; the peers of the old one come again."""
        left, self._listening = self._server, listening
        await self.start()
        if left is not None:
            await ports.close(left)
        self.disconnect(lambda _: True)

    async def start(self) -> None:
        """Begin to accept peers on the listening socket."""
        self._server = await tls_server.server(self._accept, self._listening)
        await self._server.start_serving()

    async def close(self) -> None:
        self._closed = True
        if self._server is None:
            self._listening.close()
            return
        await ports.close(self._server)
        for peer in tuple(self._peers):
            await peer.close()
        await self._server.wait_closed()

    def disconnect(self, which: "Callable[[Peer], bool]") -> None:
        """End the connections of some peers at once. They hear of it, and come again."""
        for peer in [one for one in self._peers if which(one)]:
            peer.abort()

    def _accept(self) -> "Peer":
        return (self._kind or Peer)(self._on_items, self._left, self._made)

    def _made(self, peer: "Peer") -> None:
        """Count a peer, with TLS only after its handshake: a peer without a certificate must not use up a place."""
        full = len(self._peers) >= MAX_PEERS or not ports.has_room()
        if full and (superfluous := self._superfluous(peer)) is not None:
            self._peers.pop(superfluous).cancel()  # At once: another newcomer of this turn takes another place.
            superfluous.abort()
            full = False
        if self._closed or full:
            peer.abort()  # A peer that was accepted just before the port closed arrives here after it.
        self._peers[peer] = asyncio.get_running_loop().call_later(FIRST_MESSAGE_SECONDS, self._end_silent, peer)

    def _superfluous(self, newcomer: "Peer") -> "Peer | None":
        """Return the peer that a newcomer takes the place of: one that says nothing, else one of a crowding host."""
        mute = next((one for one in self._peers if not one.messages_rcved), None)
        if mute is not None:
            self.silent += 1
            return mute
        crowd = ports.crowding_host((one.origin.host for one in self._peers), newcomer.origin.host)
        return next((one for one in reversed(self._peers) if one.origin.host == crowd), None)

    def _end_silent(self, peer: "Peer") -> None:
        if not peer.messages_rcved:
            self.silent += 1
            peer.abort()

    def _left(self, peer: "Peer") -> None:
        timer = self._peers.pop(peer, None)
        if timer is not None:
            timer.cancel()
        self.malformed += bool(peer.error)
        if self._on_left is not None:
            self._on_left(peer)


class Peer(StreamReader):
    """One connection to the port.

    Attributes:
        contexts: The contexts that reported over it that they live, oldest first.
        origin: Who made the connection.
        own: The address of this host that the peer connected to.
    """

    def __init__(
        self,
        on_items: Callable[[list[Item], "Peer"], None],
        on_left: Callable[["Peer"], None],
        on_made: Callable[["Peer"], None] = lambda _: None,
    ) -> None:
        """Prepare a connection; `on_made` is called when it is made, `on_left` when it has ended."""
        super().__init__(lambda items: on_items(items, self), series=True)
        self.contexts: list[int] = []
        self.origin, self.own = Origin(), ""
        self._on_made = on_made
        self._on_left = on_left

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        super().connection_made(transport)
        self.origin, self.own = Origin.of(transport), transport.get_extra_info("sockname")[0]
        self._on_made(self)

    def alive(self, context: int) -> None:
        """Remember a context that reported that it lives, up to `MAX_CONTEXTS`."""
        if context not in self.contexts and len(self.contexts) < MAX_CONTEXTS:
            self.contexts.append(context)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_left(self)


@attrs.frozen
class FarPeer:
    """The sender of a message that a router passed on over the connection `router`.

    Attributes:
        origin: The process in the other domain.
    """

    origin: Origin
    router: Peer

    @property
    def own(self) -> str:
        """The address of this host that the router connected to."""
        return self.router.own

    @property
    def ended(self) -> asyncio.Event:
        """Set when the connection to the router has ended."""
        return self.router.ended

    def alive(self, context: int) -> None:
        """Do nothing: the end of the connection to a router says nothing about the contexts behind it."""
