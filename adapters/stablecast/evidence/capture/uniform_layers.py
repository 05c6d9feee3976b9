"""Messages for judges: a run of equal messages makes one layer, however long.

All other bytes are read as by `layers`, malformed ones too, so nothing is skipped. Pieces of large messages stay
pieces.
"""

from functools import partial

from stablecast.evidence.capture import layers
from stablecast.evidence.capture.layers import Decoded, Layer
from stablecast.evidence.capture.streams import MessageReader
from stablecast.transports import codec
from stablecast.transports.codec import lbttcp
from stablecast.transports.wire import common_messages, lbmc
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Ack, CtxInst, CtxInstD

_DATA = lbmc.MessageKind.DATA.name
_NAMES = CtxInstD, CtxInst


def start_of(octets: bytes, at: int) -> tuple[Decoded, int] | None:
    """Return the layer of the run at `at`, and its end; None if it must be read message by message.

    Raises:
        WireError: If a malformed retransmission stands here.
    """
    if len(octets) - at < lbmc.DATA_HEADER.size:
        return None
    kind, code = octets[at], octets[at + 1]
    if kind == code == 0:
        topic, first, count, end = lbttcp.plain_run(octets, at)
        payload = end - at - count * lbmc.DATA_HEADER.size
        record = lbttcp.Run(topic, first, count, payload, b"")
        return (Decoded((Layer("LBMC", _DATA, record),)), end) if count else None
    if kind == lbmc.MessageKind.CONTROL and code == Ack.CODE:
        known = common_messages.shaped(octets, at)
        if known is None:
            return None
        meant = codec.decode(known)
        return Decoded((Layer("UMP", type(meant).__name__, meant),)), at + known.size
    if kind in codec.RECOVERED_KINDS:
        item, end = lbttcp.retransmissions(octets, at)
        if isinstance(item, lbttcp.RetransmissionSeries) and tuple(map(type, item.headers)) == _NAMES:
            return Decoded((Layer("LBMC", item.kind.name, item),)), end
    return None


def _tried(octets: bytes, at: int) -> tuple[Decoded, int] | None:
    try:
        return start_of(octets, at)
    except WireError:
        return None  # reading it message by message finds the defect


def _first_of(octets: bytes, at: int, roundtrip: bool) -> tuple[Decoded, int]:
    return _tried(octets, at) or layers.first_of(octets, at, roundtrip)


messages = partial(layers.messages, first=_first_of)
"""Decode messages like `layers.messages`, with one layer for each run."""


class BriefReader(MessageReader):
    """Reader of LBT-TCP with one layer for each run of equal messages."""

    def one(self, octets: bytes, at: int) -> tuple[Decoded, int] | None:
        """Decode the run or the message at `at`."""
        return _tried(octets, at) or super().one(octets, at)
