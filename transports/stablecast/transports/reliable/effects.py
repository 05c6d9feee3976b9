"""Effects of the sessions, which a driver must perform in order. Addresses are `ip:port`."""

from enum import IntEnum

import attrs

from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire.lbmc import Message


@attrs.define
class SendDatagrams:
    """Send these datagrams to `to` from the socket of the session."""

    session: int
    to: str
    datagrams: tuple[bytes, ...]


@attrs.frozen
class Unblocked:
    """The rate limit has room again: messages may be submitted."""


@attrs.frozen
class SourceClosed:
    """A closed session no longer answers; its sockets are free."""

    session: int


@attrs.frozen
class ClientJoined:
    """LBT-RU: a client has connected (CONNECT)."""

    session: int
    client: str


@attrs.frozen
class ClientLeft:
    """LBT-RU: a client became silent, or its session ended (DISCONNECT)."""

    session: int
    client: str


SourceEffect = SendDatagrams | Unblocked | SourceClosed | ClientJoined | ClientLeft


class LossReason(IntEnum):
    """The reason why the transport gave up a datagram."""

    WINDOW = 0
    """The source no longer has it (unrecovered_txw)."""
    TIME = 1
    """Requests for it failed for the whole generation interval (unrecovered_tmo)."""
    TOO_MANY = 2
    """The receiver misses more datagrams than it waits for."""


@attrs.frozen
class Began:
    """The first datagram of the session has arrived (BOS). This reports nothing about any topic."""


@attrs.define
class Received:
    """Messages of all topics of the session, in the order of arrival, each of them once."""

    items: list[Run | Message]


@attrs.frozen
class DatagramsLost:
    """`count` datagrams from the extended number `first` on are given up. `TopicLost` reports the loss of messages."""

    first: int
    count: int
    reason: LossReason


@attrs.frozen
class TopicLost:
    """The transport has lost `count` messages of a topic, from the wire number `first` on."""

    topic_index: int
    first: int
    count: int


@attrs.frozen
class SessionEnded:
    """The session has ended (EOS), for this reason. No effect follows."""

    reason: str


ReceiverEffect = SendDatagrams | Began | Received | DatagramsLost | TopicLost | SessionEnded
