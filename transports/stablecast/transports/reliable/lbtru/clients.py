"""The clients of one LBT-RU session: who is connected, and since when it is silent.

A client is there from its request until it was silent for the timeout. Every datagram from it is a sign of life; it
sends acknowledgements for no other reason.
"""

import attrs

from stablecast.transports.reliable.settings import MAX_CLIENTS


@attrs.define
class Clients:
    """Clients by address, the one that was silent for longest first; `timeout_ns` of silence ends them."""

    timeout_ns: int
    heard_at: dict[str, int] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.heard_at)

    def add(self, client: str, now: int) -> bool:
        """It asks to be let in; returns whether there is room."""
        if len(self.heard_at) >= MAX_CLIENTS:
            return False
        self.heard_at[client] = now
        return True

    def hear(self, client: str, now: int) -> bool:
        """A sign of life; returns whether it is connected."""
        if client not in self.heard_at:
            return False
        del self.heard_at[client]  # behind all others
        self.heard_at[client] = now
        return True

    def expire(self, now: int) -> list[str]:
        """Those that were silent for too long, who are clients no more."""
        gone: list[str] = []
        for client, heard_at in self.heard_at.items():
            if heard_at + self.timeout_ns > now:
                break
            gone.append(client)
        for client in gone:
            del self.heard_at[client]
        return gone

    def next(self) -> int | None:
        """When `expire` is due, in nanoseconds."""
        oldest = next(iter(self.heard_at.values()), None)
        return None if oldest is None else oldest + self.timeout_ns
