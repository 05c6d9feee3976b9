"""Encoding of retransmissions: the sent or stored bytes, with other headers in front.

The bytes after the header of a message, its chain and its payload, are not decoded.
"""

import struct

from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.codec.lbttcp import span
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, uniform_runs

AGAIN_BYTES = 24
"""Bytes of the two headers that a retransmission adds: destination session and original sender."""

_HEADER = struct.Struct(">BBHIIBBHQBBHQ")
"""`DATA_HEADER`, CTXINSTD and CTXINST."""


def encode_again(
    session: Incarnation, sender: Incarnation, block: bytes | memoryview, skip: int, count: int, proactive: bool = False
) -> bytes:
    """Return `count` messages of a run, after the first `skip`, for the session `session`; `sender` sent them.

    Messages that are too large for the two additional headers are left out. Our sources send no such messages.
    """
    kind = lbmc.MessageKind.PROACTIVE if proactive else lbmc.MessageKind.RETRANSMISSION
    code, following = h.CtxInstD.CODE, h.CtxInst.CODE
    unpack, pack, lead = lbmc.DATA_HEADER.unpack_from, _HEADER.pack, lbmc.DATA_HEADER.size
    start, stop = span(block, skip, count)
    octets, parts, at = bytes(block[start:stop]), [], 0
    if count >= uniform_runs.MANY and uniform_runs.count(octets, 0, lead) == count:
        _, chain, length, topic, number = unpack(octets)
        if length + AGAIN_BYTES <= lbmc.MAX_MESSAGE:
            head = pack(kind, code, length + AGAIN_BYTES, topic, 0, following, 12, 0, session, chain, 12, 0, sender)
            return uniform_runs.build(head, number, uniform_runs.payloads(octets, lead, length, 0, count))
    for _ in range(count):
        _, chain, length, topic, number = unpack(octets, at)
        if length + AGAIN_BYTES <= lbmc.MAX_MESSAGE:
            parts.append(
                pack(kind, code, length + AGAIN_BYTES, topic, number, following, 12, 0, session, chain, 12, 0, sender)
            )
            parts.append(octets[at + lead : at + length])
        at += length
    return b"".join(parts)
