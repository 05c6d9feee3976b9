"""Codec of the core: converts messages of the core to LBMC control messages and back."""

from stablecast.transports.codec.decoding import decode
from stablecast.transports.codec.encoding import encode
from stablecast.transports.codec.identity import (
    RECOVERED_KINDS,
    Recovered,
    RecoveredRun,
    decode_recovered,
    decode_series,
    greeting,
    join,
    session_of,
    split,
)
from stablecast.transports.codec.retransmission import AGAIN_BYTES, encode_again

__all__ = [
    "AGAIN_BYTES",
    "RECOVERED_KINDS",
    "Recovered",
    "RecoveredRun",
    "decode",
    "decode_recovered",
    "decode_series",
    "encode",
    "encode_again",
    "greeting",
    "join",
    "session_of",
    "split",
]
