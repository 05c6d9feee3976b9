"""Chained headers: each header names the code of the next one, and the last header names the code that ends the chain.

A header is two bytes of lead (code of the next header, own length) and a body. LBMC messages and the packets of LBT-RM
and LBT-RU carry such chains. Each of them has codes of its own.
"""

from collections.abc import Callable
from typing import TypeVar

from stablecast.transports.wire.errors import WireError

LEAD = 2
"""Bytes before the body of each header: code of the next header, own length."""
MIN_LENGTH = 4
MAX_LENGTH = 255
"""Bytes of a header with its lead."""

HeaderT = TypeVar("HeaderT")


def check_length(header: object, body: bytes) -> None:
    """Raise WireError if a header with this body has no length in `MIN_LENGTH`..`MAX_LENGTH`."""
    if not MIN_LENGTH <= LEAD + len(body) <= MAX_LENGTH:
        raise WireError(f"{type(header).__name__} has {LEAD + len(body)} bytes, not {MIN_LENGTH} to {MAX_LENGTH}")


def encode_chain(
    headers: tuple[HeaderT, ...], last: int, pack: Callable[[HeaderT], tuple[int, bytes]]
) -> tuple[int, bytes]:
    """Return the code of the first header and the bytes of all headers; the last header names `last`."""
    if not headers:
        return last, b""
    code, packed = last, []
    for header in reversed(headers):  # backwards, because each header names the next one
        own, body = pack(header)
        packed.append(bytes((code, LEAD + len(body))) + body)
        code = own
    packed.reverse()
    return code, b"".join(packed)


def decode_chain(
    octets: bytes, position: int, code: int, last: int, unpack: Callable[[int, bytes], HeaderT]
) -> tuple[tuple[HeaderT, ...], int]:
    """Return the headers from `position` on, of which `code` is the first, up to `last`, and the position of their end.

    Raises:
        WireError: If a header exceeds the bytes or cannot be decoded.
    """
    headers = []
    while code != last:
        if len(octets) - position < MIN_LENGTH:
            raise WireError(f"the message ends where a header of code {code} must stand")
        following, length = octets[position], octets[position + 1]
        end = position + length
        if length < MIN_LENGTH or end > len(octets):
            raise WireError(f"a header of code {code} cannot be {length} bytes long here")
        headers.append(unpack(code, octets[position + LEAD : end]))
        position, code = end, following
    return tuple(headers), position
