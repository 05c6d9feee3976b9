"""Addresses as users write them: `ip:port`."""

import ipaddress

from stablecast.core.errors import StablecastError

MAX_PORT = 65_535


class AddressError(StablecastError):
    """An address that cannot be used; the message names it and the form that is wanted."""


def parse(text: str) -> tuple[str, int]:
    """Split `ip:port` (P-213: an address, not a host name). Raises AddressError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) <= MAX_PORT:
        raise AddressError(f"'{text}' is not an address: write ip:port, for example 127.0.0.1:14567")
    return (check_ip(host), int(port))


def check_ip(text: str) -> str:
    """An IPv4 address. Raises AddressError."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ipaddress.AddressValueError:
        raise AddressError(f"'{text}' is not an IPv4 address; host names are not resolved here") from None


def join(host: str, port: int) -> str:
    """The text form."""
    return f"{host}:{port}"
