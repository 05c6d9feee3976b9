"""Batches of a reader: consecutive messages that stores sent on request."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

import attrs

from stablecast.client.batch import ArrivalTime, AssembledBatch, Batch
from stablecast.client.inbox import Inbox
from stablecast.client.message import Message
from stablecast.client.redelivery import Redeliverer
from stablecast.core.protocol.effects import Deliver
from stablecast.core.subscription.succession import Succession
from stablecast.runtime import machine
from stablecast.transports.codec.fragments import WholeMessage
from stablecast.transports.codec.lbttcp import Run

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_RUN = Run(0, 0, 2, 0, b"", chained=False)


def _nothing_to_settle() -> Redeliverer:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    return Redeliverer(inbox, inbox.put, None, "a reader acknowledges nothing: use a receiver", lambda *_: None)


@attrs.define(eq=False)
class RangeOwner:
    """The owner of a reader's batches: a reader acknowledges nothing, so consumption only makes room.

    Attributes:
        topic: The topic.
        session_id: The session id of the source, 0 if it has none.
        succession: Never used, because a reader has no sessions.
    """

    topic: str
    session_id: int
    came_at: Callable[[int], int | None]
    succession: Succession = cast("Succession", None)
    redeliverer: Redeliverer = attrs.field(init=False, factory=_nothing_to_settle)

    @property
    def arrival(self) -> ArrivalTime:
        """Return the time now, because a batch is made of what has just arrived."""
        arrival = ArrivalTime()
        arrival.ns = machine.clock.wall_ns()
        return arrival

    @property
    def source_name(self) -> str:
        """Return the session id as a text: a reader knows no registration of the source."""
        return f"session {self.session_id}"

    def dropped(self, count: int) -> None:
        """Do nothing: a reader keeps no account of consumption."""

    def check_thread(self) -> None:
        """Do nothing: consumption of these messages changes nothing."""

    def consumed(self, first: int, last: int) -> None:
        """Do nothing: a reader keeps no account of consumption."""

    def acknowledge(self, first: int, number: int) -> None:
        """Do nothing: a reader is no client of the stores."""

    def acknowledge_now(self) -> None:
        """Do nothing: a reader keeps no account of consumption."""


class RangeBatch(Batch):
    """Plain messages that stores sent on request."""

    __slots__ = ("_contents",)

    def __init__(self, contents: Sequence[bytes], first: int, incarnation: int, owner: RangeOwner) -> None:
        """Make a batch of messages with these payloads, which begins with number `first`."""
        super().__init__(_NO_RUN, 0, len(contents), first, incarnation, owner, recovered=True)
        self._contents = contents

    @property
    def size(self) -> int:
        """Return the bytes of payload."""
        return sum(map(len, self._contents))

    def payloads(self) -> list[bytes]:
        return list(self._contents)

    def keep(self, begin: int, end: int) -> None:
        super().keep(begin, end)
        self._contents = self._contents[begin:end]


def assembled(wholes: list[WholeMessage], incarnation: int, owner: RangeOwner) -> Batch:
    """Return a batch of messages that were cut into pieces, or have properties."""
    delivered = Deliver(0, 0, len(wholes), wholes[0].first, recovered=True, done=True)
    return AssembledBatch(wholes, _NO_RUN, delivered, incarnation, owner)


class StoredMessage(Message):
    """A message that a reader returns.

    Attributes:
        payload: The bytes that the source sent.
        session_id: The session id of its source, 0 if the source has none.
        came_at: When a store received it; None: not known, or the reader has not `times`.
    """

    __slots__ = ("came_at", "session_id")

    def __init__(self, payload: bytes, batch: Batch, index: int) -> None:
        super().__init__(payload, batch, index)
        owner = cast("RangeOwner", batch.owner)
        self.session_id = owner.session_id
        self.came_at = moment(owner.came_at(self.number))


def moment(nanoseconds: int | None) -> datetime | None:
    """Return a time in ns of the epoch as a datetime in UTC, None for None."""
    return None if nanoseconds is None else _EPOCH + timedelta(microseconds=nanoseconds // 1000)
