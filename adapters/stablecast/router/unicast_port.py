"""The request port of a portal: whole messages as bytes, because a router passes them on as they are."""

from collections.abc import Callable
from typing import Any

from stablecast.runtime.request_port import Peer
from stablecast.transports.codec.routed import Endpoint
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import PREFIX, frame

MAX_CARRIED = 4_096
"""Destinations that are remembered of one connection; with more it may have carried messages to any."""


class MessagePeer(Peer):
    """One connection. Its items are the bytes of whole messages; `note` remembers where they go."""

    def __init__(self, on_items: Callable[..., None], *more: Callable[..., None]) -> None:
        super().__init__(on_items, *more)
        self._rest = b""
        self._destinations: dict[Endpoint, None] = {}

    def data_received(self, data: bytes) -> None:
        """Split bytes into messages; malformed bytes end the connection."""
        self.bytes_rcved += len(data)
        try:
            found, self._rest = messages(self._rest + data)
        except WireError as error:
            self.error = str(error)
            self.abort()
            return
        self.messages_rcved += len(found)
        if found and not self._closing:
            items: list[Any] = found
            self.on_items(items)

    def note(self, destination: Endpoint) -> None:
        if destination not in self._destinations and len(self._destinations) <= MAX_CARRIED:
            self._destinations[destination] = None

    def carried(self, domain: int, address: str) -> bool:
        """Return whether a message went to a domain, or to one address there."""
        if len(self._destinations) > MAX_CARRIED:
            return True
        return any(one.domain == domain and address in ("", f"{one.ip}:{one.port}") for one in self._destinations)


def messages(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the whole messages at the start of some bytes, and the rest. Raises WireError where none can begin."""
    found, at = [], 0
    while len(data) - at >= PREFIX.size:
        end = at + frame(data, at)[1]
        if end > len(data):
            break
        found.append(data[at:end])
        at = end
    return found, data[at:]
