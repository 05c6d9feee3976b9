"""What a registration says beyond the public flags of receiver-paced persistence, in an extended option of our own.

The layouts of PREG and PREG_RESP have a flag for it and no place for its sizes, nor for the receiver that never blocks;
the configuration option of the public subtypes has no known layout. The data are a byte of flags, three reserved ones,
the write delay in ms (32 bits), then threshold, limit and disk limit in bytes, flight size in messages and in bytes (64
bits each). A message whose flag says it all goes without.
"""

import struct

from stablecast.core.protocol.messages import UNSET, Pace, Wishes
from stablecast.transports.codec.extended_options import encode_option, find_option
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

SUBTYPE = 0x5350
"""Extended option with the terms of receiver-paced persistence."""

TERMS = struct.Struct(">B3xI5Q")
NON_BLOCKING = 0x01
ACK_ON_RECEPTION = 0x02
WRITE_DELAY = 0x04
"""The delay is one that was asked for; else its field means nothing."""


def encode_pace(pace: Pace, wishes: Wishes) -> tuple[h.Header, ...]:
    """The header of what the flag does not say; none where it says it all."""
    if pace is not Pace.NON_BLOCKING and wishes == Wishes():
        return ()
    flags = NON_BLOCKING if pace is Pace.NON_BLOCKING else 0
    flags |= ACK_ON_RECEPTION if wishes.ack_on_reception else 0
    delay = 0
    if wishes.write_delay_ms != UNSET:
        flags |= WRITE_DELAY
        delay = wishes.write_delay_ms
    data = TERMS.pack(
        flags,
        delay,
        wishes.size_threshold,
        wishes.size_limit,
        wishes.disk_limit,
        wishes.flight_messages,
        wishes.flight_bytes,
    )
    return encode_option(SUBTYPE, data)


def decode_pace(message: lbmc.Message, paced: bool) -> tuple[Pace, Wishes]:
    """Pace and wishes of a message whose public flag is `paced`. Raises WireError for data of another size."""
    pace = Pace.RECEIVERS if paced else Pace.SOURCE
    data = find_option(message, SUBTYPE)
    if not data:
        return pace, Wishes()
    if len(data) != TERMS.size:
        raise WireError(f"the terms of receiver-paced persistence cannot have {len(data)} bytes")
    flags, delay, threshold, limit, disk_limit, flight_messages, flight_bytes = TERMS.unpack(data)
    return (
        Pace.NON_BLOCKING if flags & NON_BLOCKING else pace,
        Wishes(
            size_threshold=threshold,
            size_limit=limit,
            disk_limit=disk_limit,
            flight_messages=flight_messages,
            flight_bytes=flight_bytes,
            write_delay_ms=delay if flags & WRITE_DELAY else UNSET,
            ack_on_reception=bool(flags & ACK_ON_RECEPTION),
        ),
    )
