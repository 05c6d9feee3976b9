"""Where services (SRS) are, as users write it: `host:port`, names allowed, several separated by commas."""

from collections.abc import Sequence

from stablecast.runtime.address import MAX_PORT, AddressError, join


def parse_services(texts: Sequence[str]) -> list[str]:
    """The addresses in one or several texts, each `host:port` (T-411). Raises AddressError."""
    return [_parse(part.strip()) for text in texts for part in text.split(",")]


def _parse(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or ":" in host or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        raise AddressError(f"'{text}' is not the address of a service: write host:port, for example localhost:27000")
    return join(host, int(port))
