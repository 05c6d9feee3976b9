"""Inputs and effects of the machines of the TCP service, at either end. A connection is named by a number.

The number is never used again, so what comes late from a connection that was given up is told from what comes from its
successor. At a context it is also the number of its hello.
"""

import attrs

from stablecast.transports.resolution.udp.effects import Discovered, Remark, Withdrawn
from stablecast.transports.resolution.udp.inputs import ResolutionInput


@attrs.frozen
class Accepted:
    """A client connected; `peer` is `ip:port`."""

    connection: int
    peer: str


@attrs.frozen
class Opened:
    """The connection that was asked for is there; `local` is our end of it, `ip:port`."""

    connection: int
    local: str


@attrs.frozen
class Received:
    """The next bytes of a connection."""

    connection: int
    data: bytes


@attrs.frozen
class Closed:
    """The connection is over, or was never made; not said after `Cut`."""

    connection: int
    reason: str = ""


@attrs.frozen
class Connect:
    """Connect to `address` (`host:port`, looked up anew each time), then say `Opened` or `Closed`."""

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


ServiceInput = Accepted | Received | Closed
ServiceEffect = SendBytes | Disconnect | Remark
SrsContextInput = ResolutionInput | Opened | Received | Closed
SrsContextEffect = Connect | SendBytes | Disconnect | Discovered | Withdrawn | ServiceChanged
