"""What carries the datagrams of a context: relays (`relays`), or a multicast group."""

import ipaddress
from collections.abc import Sequence
from typing import Protocol

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.codec.places import split
from stablecast.transports.resolution.udp.effects import Remark

DEFAULT_GROUP = "224.9.10.11:12965"
"""Where contexts meet over multicast (T-022)."""


class Carrier(Protocol):
    """What a context needs of it; times in nanoseconds."""

    @property
    def running(self) -> bool:
        """Whether the context takes part."""

    def start(self, now: int) -> None:
        """The context has something to resolve."""

    def stop(self) -> None:
        """It has nothing to resolve any more."""

    def accepts(self, sender: str) -> bool:
        """Whether a datagram may come from there."""

    def on_heard(self, sender: str, now: int) -> None:
        """One came."""

    def pick(self, now: int) -> str:
        """Where to send the next datagram."""

    def sent(self, to: str, now: int) -> None:
        """It was sent."""

    def take_keepalives(self, now: int) -> Sequence[str]:
        """Where to send a keepalive."""

    def handle_timeout(self, now: int) -> None:
        """Does what is due."""

    def next(self) -> int | None:
        """When `take_keepalives` or `handle_timeout` is due."""

    def take_remarks(self) -> list[Remark]:
        """Lines for the log."""

    def complaint(self) -> str:
        """Why nothing may be heard; empty: no reason is known."""


@attrs.define
class Group:
    """A multicast group (T-022): everybody hears everything, nobody needs to be kept alive.

    Attributes:
        address: Where to send, `ip:port`.
        heard: Whether anything was ever heard there.
    """

    address: str = DEFAULT_GROUP
    running: bool = attrs.field(default=False, init=False)
    heard: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        host, port = split(self.address)
        if not ipaddress.IPv4Address(host).is_multicast or not port:
            raise MisuseError(f"'{self.address}' is not a multicast group: write one as {DEFAULT_GROUP}")

    def start(self, _: int) -> None:
        """The context has something to resolve."""
        self.running = True

    def stop(self) -> None:
        """It has nothing to resolve any more."""
        self.running = False

    def accepts(self, _: str) -> bool:
        """Anybody may send to a group."""
        return True

    def on_heard(self, _: str, __: int) -> None:
        """A datagram of another context came."""
        self.heard = True

    def pick(self, _: int) -> str:
        """The group."""
        return self.address

    def sent(self, to: str, now: int) -> None:
        """Groups do not care."""

    def take_keepalives(self, _: int) -> tuple[str, ...]:
        """None."""
        return ()

    def handle_timeout(self, now: int) -> None:
        """Nothing is ever due."""

    def next(self) -> int | None:
        """Never."""
        return None

    def take_remarks(self) -> list[Remark]:
        """None."""
        return []

    def complaint(self) -> str:
        """A group of which nothing was ever heard may not be joined, or not be forwarded."""
        return "" if self.heard else f"no other context was heard in the group {self.address}"
