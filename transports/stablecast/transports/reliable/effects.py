"""Effects of the sessions: what a driver must do, in order. Addresses are `ip:port`."""

from enum import IntEnum

import attrs

from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire.lbmc import Message


@attrs.define
class SendDatagrams:
    """Send these to `to` from the socket of the session."""

    session: int
    to: str
    datagrams: tuple[bytes, ...]


@attrs.frozen
class Unblocked:
    """The rate limit was reached and is no more: messages may be submitted."""


@attrs.frozen
class SourceClosed:
    """A session that was closed answers no more; its sockets are free."""

    session: int


@attrs.frozen
class ClientJoined:
    """LBT-RU: a client is connected (CONNECT)."""

    session: int
    client: str


@attrs.frozen
class ClientLeft:
    """LBT-RU: a client fell silent, or its session ended (DISCONNECT)."""

    session: int
    client: str


SourceEffect = SendDatagrams | Unblocked | SourceClosed | ClientJoined | ClientLeft


class LossReason(IntEnum):
    """Why the transport gave a datagram up."""

    WINDOW = 0
    """The source does not have it any more (unrecovered_txw)."""
    TIME = 1
    """It was asked for in vain for the generation interval (unrecovered_tmo)."""
    TOO_MANY = 2
    """More are missing than are waited for."""


@attrs.frozen
class Began:
    """The session is heard for the first time (BOS). It says nothing of any topic."""


@attrs.define
class Received:
    """Messages of all topics of the session, in the order of arrival; each one once."""

    items: list[Run | Message]


@attrs.frozen
class DatagramsLost:
    """`count` datagrams from the extended number `first` on are given up. What topics lost is told by `TopicLost`."""

    first: int
    count: int
    reason: LossReason


@attrs.frozen
class TopicLost:
    """`count` messages of a topic from the wire number `first` on are lost to the transport."""

    topic_index: int
    first: int
    count: int


@attrs.frozen
class SessionEnded:
    """The session is over (EOS), and why. Nothing comes after this."""

    reason: str


ReceiverEffect = SendDatagrams | Began | Received | DatagramsLost | TopicLost | SessionEnded
