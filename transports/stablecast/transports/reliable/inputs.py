"""Inputs of the sessions. `session` is the driver's name of a source session. Addresses are `ip:port`."""

import attrs

from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.settings import SourceSettings


@attrs.frozen
class OpenSession:
    """A new source session.

    Attributes:
        address: LBT-RM: group and port that data goes to. LBT-RU: where the session is.
        nak_port: LBT-RM: where NAKs are to come.
        session_id: 32 bits, not 0.
    """

    session: int
    address: str
    session_id: int
    nak_port: int = 0
    settings: SourceSettings = SourceSettings()


@attrs.define
class Submit:
    """Send whole messages, back to back: data of one topic, or a control message."""

    session: int
    block: bytes
    mark: BatchMark = BatchMark.NONE


@attrs.frozen
class Flush:
    """What is in the session's batch leaves now."""

    session: int


@attrs.frozen
class ForgetTopic:
    """A topic's source is gone; others go on."""

    session: int
    topic_index: int


@attrs.frozen
class CloseSession:
    """The last source of a session is gone; without `linger` it answers nobody any more."""

    session: int
    linger: bool = True


@attrs.define
class DatagramsReceived:
    """Datagrams came to the source's socket, each with its sender."""

    session: int
    datagrams: tuple[tuple[bytes, str], ...]


SourceInput = OpenSession | Submit | Flush | ForgetTopic | CloseSession | DatagramsReceived


@attrs.define
class SessionDatagrams:
    """Datagrams of the session came, in one read. They need be there only until the machine has taken them."""

    datagrams: tuple[bytes | memoryview, ...]


@attrs.frozen
class LeaveSession:
    """Nobody listens any more."""


ReceiverInput = SessionDatagrams | LeaveSession
