"""What processes say to each other: to bytes and back by the unmodified codec, and what was seen before is remembered.

In a world most is said more than once: a stream to five subscribers, signs of life again and again. Bytes of a message,
and messages in bytes, depend on nothing else, so that remembering them changes no world and saves a tenth of its time.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import attrs

from stablecast.core.protocol.messages import Message
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.wire import lbmc

REMEMBERED: Final = 4096
"""Messages, and pieces of a stream, that are remembered: a few worlds' worth."""


@attrs.frozen
class Greeting:
    """Whose stream it is: what a source says first on each connection of it."""

    session_id: int


Item = Run | Message | codec.Recovered | Greeting
"""What arrives on a connection."""

NO_MESSAGE: Final = (Run, codec.Recovered, Greeting)
"""The kinds of items that are not said by a machine to a machine."""

encode = lru_cache(REMEMBERED)(codec.encode)
"""The bytes of a message."""


class Reader:
    """What one connection carries, piece by piece."""

    def __init__(self) -> None:
        """Nothing has come."""
        self._decoder = StreamDecoder()

    def feed(self, data: bytes) -> Sequence[Item]:
        """What these bytes complete. Raises WireError for what nobody says."""
        if not self._decoder.pending:
            items = _whole(data)
            if items is not None:
                return items
        return [_meaning(found) for found in self._decoder.feed(data)]


@lru_cache(REMEMBERED)
def _whole(data: bytes) -> tuple[Item, ...] | None:
    """The items in these bytes, None if the last one is not whole."""
    decoder = StreamDecoder()
    items = decoder.feed(data)
    return None if decoder.pending else tuple(map(_meaning, items))


def _meaning(found: Run | lbmc.Message) -> Item:
    if isinstance(found, Run):
        return found
    if found.kind in codec.RECOVERED_KINDS:
        return codec.decode_recovered(found)
    session_id = codec.session_of(found) if len(found.headers) == 1 else None
    return codec.decode(found) if session_id is None else Greeting(session_id)
