"""What a source says on its session, free of bytes. Numbers are 32-bit serial numbers. Once said, none is changed."""

import attrs


@attrs.define
class Datagram:
    """A datagram of messages; `trail` is the oldest one that the source has. `again`: it is sent again."""

    number: int
    trail: int
    payload: bytes | memoryview
    again: bool = False


@attrs.define
class DatagramSeries:
    """Datagrams of messages, sent for the first time: `number` is that of the first, the trail that of all."""

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
    """An NCF: datagrams that are not sent again now, and why."""

    trail: int
    reason: int
    numbers: tuple[int, ...]


SourcePacket = Datagram | DatagramSeries | SessionStatus | NakRefusal
"""What a source says."""
