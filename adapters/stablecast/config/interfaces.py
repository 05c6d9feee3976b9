"""Which address of this host to use: an address, a range `10.29.3.16/25`, or all (P-810)."""

import fcntl
import ipaddress
import socket
import struct

from stablecast.core.errors import StablecastError

ANY = "0.0.0.0"  # noqa: S104 - the documented default of a store's interface
_SIOCGIFADDR = 0x8915
"""The request for an interface's address (Linux)."""
_NAME_BYTES = 15
_REQUEST = struct.Struct("16s4x4s232x")
"""An interface's name, and the place of the IPv4 address in the answer."""


class InterfaceError(StablecastError):
    """No address of this host fits; the message names those there are."""


def addresses() -> list[str]:
    """The IPv4 address of each interface of this host, in the system's order."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asking, _SIOCGIFADDR, _REQUEST.pack(name.encode()[:_NAME_BYTES], bytes(4)))
            except OSError:
                continue  # An interface without an IPv4 address.
            found.append(socket.inet_ntoa(_REQUEST.unpack(answer)[1]))
    return found


def choose(text: str) -> str:
    """The address to listen at: an address as it is, of a range the first that this host has.

    Raises:
        InterfaceError: It is neither, or no address of this host lies in the range.
    """
    try:
        if "/" not in text:
            return str(ipaddress.IPv4Address(text))
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise InterfaceError(
            f"'{text}' is not an interface: write an IPv4 address, or a range like 10.29.3.16/25"
        ) from None
    there = addresses()
    for address in there:
        if ipaddress.IPv4Address(address) in network:
            return address
    raise InterfaceError(f"no interface of this host lies in {text}: it has {', '.join(there)}")


def announced(host: str) -> str:
    """Where others reach what listens at `host`: for all interfaces the first that leads out of this host."""
    if host != ANY:
        return host
    return next((one for one in addresses() if not ipaddress.IPv4Address(one).is_loopback), "127.0.0.1")
