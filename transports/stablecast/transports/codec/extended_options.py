"""Extended options of our own: data that the public headers have no place for; peers that do not know it may ignore it.

What one header has no room for goes on in the next one of the same kind. They are not marked as fragments: public
dissectors call an option malformed that comes in more than two.
"""

from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc

FLAGS = h.ExtendedOption.IGNORE | h.ExtendedOption.IGNORE_SUBTYPE


def encode_option(subtype: int, data: bytes) -> tuple[h.Header, ...]:
    """The headers of an option; none without data."""
    size = h.ExtendedOption.MAX_DATA
    pieces = (data[offset : offset + size] for offset in range(0, len(data), size))
    return tuple(h.ExtendedOption(flags=FLAGS, subtype=subtype, data=piece) for piece in pieces)


def find_option(message: lbmc.Message, subtype: int) -> bytes:
    """The data of an option, empty where the message has none."""
    options = (header for header in message.headers if isinstance(header, h.ExtendedOption))
    return b"".join(option.data for option in options if option.subtype == subtype)
