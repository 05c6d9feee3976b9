"""Inputs and effects of the machines of the TCP service, at either end. A connection is identified by a number.

The number is never used again. So late input from an abandoned connection differs from that of its successor. At a
context it is also the number in the hello.
"""

import attrs

from stablecast.transports.resolution.udp.effects import Abandoned, Discovered, DomainEffect, Remark, Withdrawn
from stablecast.transports.resolution.udp.inputs import ResolutionInput
from stablecast.transports.wire.lbmr import Query


@attrs.frozen
class ConnectionAccepted:
    """A client has connected; `peer` is `ip:port`."""

    connection: int
    peer: str


@attrs.frozen
class ConnectionOpened:
    """The requested connection is open; `local` is this end of it, `ip:port`."""

    connection: int
    local: str


@attrs.frozen
class BytesReceived:
    """A connection received bytes."""

    connection: int
    data: bytes


@attrs.frozen
class ConnectionClosed:
    """The connection has ended, or was never made. The driver feeds no such input after `Disconnect`."""

    connection: int
    reason: str = ""


@attrs.frozen
class Connect:
    """Connect to `host:port`, resolved for each attempt. Then feed `ConnectionOpened` or `ConnectionClosed`."""

    connection: int
    address: str


@attrs.frozen
class SendBytes:
    """Send bytes on a connection. If too many bytes wait to be sent, break the connection."""

    connection: int
    data: bytes


@attrs.frozen
class Disconnect:
    """Break the connection, or stop connecting. The machine has forgotten it."""

    connection: int


@attrs.frozen
class ServiceChanged:
    """A service has sent all records and is current (`up`), or no longer is."""

    address: str
    up: bool
    reason: str = ""


@attrs.frozen
class InterestChanged:
    """To a router: contexts of the domain want a topic or a pattern, or none does any more."""

    query: Query
    on: bool


@attrs.frozen
class Reaches:
    """The portal's router reaches these other domains, and no more, through its request port (`ip:port`)."""

    domains: tuple[int, ...]
    address: str


ServiceInput = ConnectionAccepted | BytesReceived | ConnectionClosed
ServiceEffect = SendBytes | Disconnect | Remark
SrsContextInput = ResolutionInput | Reaches | ConnectionOpened | BytesReceived | ConnectionClosed
SrsContextEffect = (
    Connect
    | SendBytes
    | Disconnect
    | Discovered
    | Withdrawn
    | Abandoned
    | ServiceChanged
    | DomainEffect
    | InterestChanged
)
