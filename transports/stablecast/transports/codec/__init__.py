"""Core messages as LBMC control messages, and back."""

from stablecast.transports.codec.decoding import decode
from stablecast.transports.codec.encoding import encode
from stablecast.transports.codec.identity import (
    Recovered,
    decode_recovered,
    encode_recovered,
    greeting,
    join,
    session_of,
    split,
)

__all__ = [
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
