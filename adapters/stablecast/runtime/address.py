"""Addresses as users write them: `ip:port` for contexts and stores, `host:port` for services (SRS)."""

import ipaddress
from collections.abc import Sequence

from stablecast.core.errors import StablecastError

MAX_PORT = 65_535


class AddressError(StablecastError):
    """An address that cannot be used; the message names it and the expected form."""


def parse(text: str) -> tuple[str, int]:
    """Split `ip:port` (P-213: an address, not a host name). Raises AddressError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) <= MAX_PORT:
        raise AddressError(f"'{text}' is not an address: write ip:port, for example 127.0.0.1:14567")
    return (check_ip(host), int(port))


def check_ip(text: str) -> str:
    """Return an IPv4 address in its canonical form. Raises AddressError."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ipaddress.AddressValueError:
        raise AddressError(f"'{text}' is not an IPv4 address; host names are not resolved here") from None


def join(host: str, port: int) -> str:
    """Return `host:port`, the inverse of `parse`."""
    return f"{host}:{port}"


def parse_services(texts: Sequence[str]) -> list[str]:
    """Return the addresses of texts, each a list of `host:port` with commas (T-411). Raises AddressError."""
    return [_service(part.strip()) for text in texts for part in text.split(",")]


def _service(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or ":" in host or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        raise AddressError(f"'{text}' is not the address of a service: write host:port, for example localhost:27000")
    return join(host, int(port))
