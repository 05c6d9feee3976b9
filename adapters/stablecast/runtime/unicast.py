"""The local ends of resolution over UDP through relays, and of connections to resolver services."""

from collections.abc import Mapping

import attrs

from stablecast.runtime import datagrams, machine
from stablecast.runtime.address import check_ip
from stablecast.runtime.interfaces import address_of

LOCAL_PORTS = (14_402, 14_406)
"""Local ports of contexts, by which public dissectors recognise resolution; if all are in use, any port serves."""


@attrs.frozen
class UnicastSettings:
    """The local end of resolution through relays.

    Attributes:
        interface: Address, network, device or host name of this host; empty: the interface of the context.
        low, high: Range of local ports (resolver_unicast_port_low, _high).
        receive_buffer: Bytes that the kernel may hold for reading; 0: the system's size.
    """

    interface: str = ""
    low: int = LOCAL_PORTS[0]
    high: int = LOCAL_PORTS[1]
    receive_buffer: int = datagrams.RECEIVE_BUFFER


ANY_PORT = UnicastSettings()
"""The documented range of ports, on the interface of the context."""


@attrs.frozen
class LocalEnd:
    """The local end for one relay or service: an interface (empty: the usual one) and a port (0: the usual range)."""

    interface: str = ""
    port: int = 0

    def address(self, usual: str) -> str:
        """Return the local address, where `usual` is that without an interface. Raises InterfaceError."""
        return address_of(self.interface) if self.interface else check_ip(usual)


def bound(settings: UnicastSettings, usual: str, end: LocalEnd = LocalEnd()) -> machine.Socket:
    """Return a socket at the local end; `usual` is the address without an interface.

    Raises PortError, InterfaceError.
    """
    interface = LocalEnd(end.interface or settings.interface).address(usual)
    if end.port:
        return datagrams.bind(interface, end.port, receive_buffer=settings.receive_buffer)
    return datagrams.bind_near(interface, settings.low, settings.high, settings.receive_buffer)


NO_ENDS: Mapping[str, LocalEnd] = {}
"""The local ends of single relays or services by default: none has one of its own."""
