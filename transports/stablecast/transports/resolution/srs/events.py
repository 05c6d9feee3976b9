"""Inputs and effects of the machines of the TCP service, at either end. A connection is named by a number.

The number is never used again, so what comes late from a connection that was given up is told from what comes from its
successor. At a context it is also the number of its hello.
"""

import attrs

from stablecast.transports.resolution.udp.effects import Discovered, Remark, Withdrawn
from stablecast.transports.resolution.udp.inputs import ResolutionInput


@attrs.frozen
class ConnectionAccepted:
    """A client connected; `peer` is `ip:port`."""

    connection: int
    peer: str


@attrs.frozen
class ConnectionOpened:
    """The connection that was asked for is there; `local` is our end of it, `ip:port`."""

    connection: int
    local: str


@attrs.frozen
class BytesReceived:
    """The next bytes of a connection."""

    connection: int
    data: bytes


@attrs.frozen
class ConnectionClosed:
    """The connection is over, or was never made; not said after `Cut`."""

    connection: int
    reason: str = ""


@attrs.frozen
class Connect:
    """Connect to `host:port`, resolved for each attempt. Then feed `ConnectionOpened` or `ConnectionClosed`."""

    connection: int
    address: str


@attrs.frozen
class SendBytes:
    """Send bytes; if too many wait to be sent, break the connection."""

    connection: int
    data: bytes


@attrs.frozen
class Disconnect:
    """Break the connection, or give up making it; the machine knows it no more."""

    connection: int


@attrs.frozen
class ServiceChanged:
    """A service has told all and keeps us informed from now on (`up`), or does so no more."""

    address: str
    up: bool
    reason: str = ""


ServiceInput = ConnectionAccepted | BytesReceived | ConnectionClosed
ServiceEffect = SendBytes | Disconnect | Remark
SrsContextInput = ResolutionInput | ConnectionOpened | BytesReceived | ConnectionClosed
SrsContextEffect = Connect | SendBytes | Disconnect | Discovered | Withdrawn | ServiceChanged
