"""The history of a source on the wire: an extended option of our own, which peers that do not know it may ignore.

Data of the option: term (32 bits), term of the history (32 bits), then each life as incarnation (64 bits) and first
number (32 bits).
"""

import struct

from stablecast.core.protocol.messages import Life
from stablecast.transports.codec.extended_options import encode_option, find_option
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

SUBTYPE = 0x5343
"""Extended option with a history; the public subtypes are 256 and 257."""

TERMS = struct.Struct(">II")
LIFE = struct.Struct(">QI")


def encode_lives(term: int, lives_term: int, lives: tuple[Life, ...]) -> tuple[h.Header, ...]:
    """The headers of a history; none where there is nothing to tell."""
    if not term and not lives_term and not lives:
        return ()
    return encode_option(SUBTYPE, TERMS.pack(term, lives_term) + b"".join(LIFE.pack(*life) for life in lives))


def decode_lives(message: lbmc.Message) -> tuple[int, tuple[Life, ...], int]:
    """Term, history, and the term of the history; nothing where the message has none. Raises WireError."""
    data = find_option(message, SUBTYPE)
    if not data:
        return (0, (), 0)
    if len(data) < TERMS.size or (len(data) - TERMS.size) % LIFE.size:
        raise WireError(f"a history cannot have {len(data)} bytes")
    term, lives_term = TERMS.unpack_from(data)
    history = tuple((incarnation, first) for incarnation, first in LIFE.iter_unpack(data[TERMS.size :]))
    return (term, history, lives_term)
