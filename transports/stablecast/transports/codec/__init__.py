"""Core messages as LBMC control messages, and back."""

from stablecast.transports.codec.decoding import decode
from stablecast.transports.codec.encoding import encode
from stablecast.transports.codec.identity import (
    RECOVERED_KINDS,
    Recovered,
    decode_recovered,
    encode_recovered,
    greeting,
    join,
    session_of,
    split,
)

__all__ = [
    "RECOVERED_KINDS",
    "Recovered",
    "decode",
    "decode_recovered",
    "encode",
    "encode_recovered",
    "greeting",
    "join",
    "session_of",
    "split",
]
