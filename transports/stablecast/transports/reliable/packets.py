"""The packets of a source on its session, without bytes. Numbers are 32-bit serial numbers. Packets never change."""

import attrs


@attrs.define
class Datagram:
    """A datagram of messages; `trail` is the oldest number that the source has; `again` marks a retransmission."""

    number: int
    trail: int
    payload: bytes | memoryview
    again: bool = False


@attrs.define
class DatagramSeries:
    """Datagrams of messages, sent for the first time: `number` is that of the first one, `trail` that of all."""

    number: int
    trail: int
    payloads: list[bytes | memoryview]


@attrs.define
class SessionStatus:
    """A session message: its own number, the newest datagram, the oldest one. `opening`: it accepts a connection."""

    number: int
    lead: int
    trail: int
    opening: bool = False


@attrs.define
class NakRefusal:
    """An NCF: datagrams that are not retransmitted now, and the reason."""

    trail: int
    reason: int
    numbers: tuple[int, ...]


SourcePacket = Datagram | DatagramSeries | SessionStatus | NakRefusal
"""All packets of a source."""
