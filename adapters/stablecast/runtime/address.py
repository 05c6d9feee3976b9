"""Addresses as users write them: `ip:port` or `host:port`. Peers, journals and the core know `ip:port` only."""

import ipaddress
import re
from collections.abc import Sequence

from stablecast.core.errors import StablecastError
from stablecast.transports.codec.domains import join_domain, split_domain

MAX_PORT = 65_535


HOST = re.compile(r"(?=.{1,253}\Z)(?:[A-Za-z0-9_-]{1,63}\.)*(?=[0-9-]*[A-Za-z])[A-Za-z0-9-]{1,63}\.?")
"""The form of a host name. Its last label has a letter, so that a mistyped IPv4 address is no host name."""


ONLY_IP4 = "the messages of the protocol carry IPv4 addresses only: write the IPv4 address of that host"
"""The reason why stores, relays, sources and contexts have IPv4 addresses; services and monitors need none."""


class AddressError(StablecastError):
    """An address that cannot be used; the message names it and the expected form."""


def parse(text: str) -> tuple[str, int]:
    """Split `ip:port` (P-213: an address, not a host name). Raises AddressError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) <= MAX_PORT:
        raise AddressError(f"'{text}' is not an address: write ip:port, for example 127.0.0.1:14567")
    return (check_ip(host), int(port))


def canonical(text: str) -> str:
    """Return `ip:port` or `domain:ip:port` in its canonical form. Raises AddressError."""
    domain, place = split_domain(text)
    return join_domain(domain, join(*parse(place)))


def parse_place(text: str) -> tuple[str, int]:
    """Split `ip:port` or `host:port`, without a look-up of the host. Raises AddressError."""
    host, _, port = text.rpartition(":")
    if not HOST.fullmatch(host):
        return parse(text)
    return host, parse(f"0.0.0.0:{port}")[1]


def is_host(text: str) -> bool:
    """Return whether a text is a place `host:port`, perhaps in a domain, whose host has a name."""
    host, colon, _ = split_domain(text)[1].rpartition(":")
    return bool(colon) and HOST.fullmatch(host) is not None


def check_ip(text: str) -> str:
    """Return an IPv4 address in its canonical form. Raises AddressError."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ipaddress.AddressValueError:
        if is_ip6(text):
            raise AddressError(f"'{text}' is an IPv6 address, and {ONLY_IP4}") from None
        raise AddressError(f"'{text}' is not an IPv4 address; host names are not resolved here") from None


def is_ip6(text: str) -> bool:
    """Return whether a text is an IPv6 address, with or without brackets."""
    try:
        ipaddress.IPv6Address(text.removeprefix("[").removesuffix("]"))
    except ipaddress.AddressValueError:
        return False
    return True


def join(host: str, port: int) -> str:
    """Return `host:port`, the inverse of `parse`."""
    return f"{host}:{port}"


def join_any(host: str, port: int) -> str:
    """Return `host:port`, or `[host]:port` for an IPv6 address."""
    return join(f"[{host}]" if ":" in host else host, port)


def parse_services(texts: Sequence[str]) -> list[str]:
    """Return the addresses of texts, each a list of `host:port` with commas (T-411). Raises AddressError."""
    return [_service(part.strip()) for text in texts for part in text.split(",")]


def split_service(text: str) -> tuple[str, int]:
    """Split the address of a service, `host:port` or `[IPv6 address]:port`; the host is without brackets."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _service(text: str) -> str:
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]") and is_ip6(host)
    known = bool(host) and (bracketed or not {":", "[", "]"} & set(host))
    if not colon or not known or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        form = "write host:port, for example localhost:27000 or [::1]:27000"
        raise AddressError(f"'{text}' is not the address of a service: {form}")
    return join(host, int(port))
