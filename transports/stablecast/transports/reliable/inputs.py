"""Inputs of the sessions. `session` is the driver's number of a source session. Addresses are `ip:port`."""

import attrs

from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.settings import SourceSettings


@attrs.frozen
class OpenSession:
    """Open a source session.

    Attributes:
        address: LBT-RM: group and port for data. LBT-RU: the address of the session.
        nak_port: LBT-RM: the port for NAKs.
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
    """Send the session's batch now."""

    session: int


@attrs.frozen
class ForgetTopic:
    """The source of a topic is closed; others continue."""

    session: int
    topic_index: int


@attrs.frozen
class CloseSession:
    """The last source of a session is closed. Without `linger` the session stops answering NAKs at once."""

    session: int
    linger: bool = True


@attrs.define
class DatagramsReceived:
    """The source's socket received datagrams, each with its sender."""

    session: int
    datagrams: tuple[tuple[bytes, str], ...]


SourceInput = OpenSession | Submit | Flush | ForgetTopic | CloseSession | DatagramsReceived


@attrs.define
class SessionDatagrams:
    """One read brought datagrams of the session. Their bytes may be reused after `receive` returns."""

    datagrams: tuple[bytes | memoryview, ...]


@attrs.frozen
class LeaveSession:
    """The last receiver has left the session."""


ReceiverInput = SessionDatagrams | LeaveSession
