"""Retransmissions of one message each, encoded header by header."""

from stablecast.transports import codec
from stablecast.transports.codec import identity
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc


def encode_recovered(recovered: codec.Recovered) -> bytes:
    """Encode a retransmission (kind 10, proactive: 2) with both incarnations."""
    destination = h.CtxInstD(ctxinst=identity.INSTANCE.pack(recovered.session))
    sender = h.CtxInst(ctxinst=identity.INSTANCE.pack(recovered.incarnation))
    topic_index = codec.split(recovered.incarnation)[1]
    return lbmc.encode(
        lbmc.Message(
            lbmc.MessageKind.PROACTIVE if recovered.proactive else lbmc.MessageKind.RETRANSMISSION,
            topic_index,
            recovered.wire_number,
            (destination, sender, *recovered.headers),
            recovered.payload,
        )
    )
