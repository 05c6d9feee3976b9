"""What the reliable transports over UDP have in common: lists of sequence numbers, asked for or refused."""

import struct
from enum import IntEnum

from stablecast.transports.wire.errors import WireError

SQN = struct.Struct(">I")
"""A sequence number of a transport: of a datagram, not of a message."""


class Reason(IntEnum):
    """Why a NAK is answered by a confirmation (NCF) and not by the datagram; other values may be read."""

    NO_RETRY = 0
    IGNORED = 1
    DELAYED = 2
    SHED = 3


class Format(IntEnum):
    """What the numbers of a NAK or NCF are; other values may be read."""

    SELECTIVE = 0
    PARITY = 1


def encode_sqns(sqns: tuple[int, ...]) -> bytes:
    """The bytes of some numbers. Raises WireError if one does not fit."""
    try:
        return struct.pack(f">{len(sqns)}I", *sqns)
    except struct.error as error:
        raise WireError(f"a sequence number does not fit 32 bits: {error}") from error


def decode_sqns(octets: bytes, position: int, count: int) -> tuple[tuple[int, ...], int]:
    """`count` numbers from `position` on, and where they end. Raises WireError if fewer are there."""
    end = position + count * SQN.size
    if end > len(octets):
        raise WireError(f"{count} sequence numbers are announced, {(len(octets) - position) // SQN.size} are there")
    return struct.unpack_from(f">{count}I", octets, position), end


def split_reason(octet: int) -> tuple[int, int]:
    """Reason and format of a confirmation, which share a byte."""
    return octet >> 4, octet & 0x0F


def join_reason(reason: int, form: int) -> int:
    """The byte of a reason and a format. Raises WireError if one does not fit."""
    if not (0 <= reason <= 0x0F and 0 <= form <= 0x0F):
        raise WireError(f"reason {reason} or format {form} does not fit four bits")
    return reason << 4 | form
