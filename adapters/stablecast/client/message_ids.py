"""Ids that an application gives to its messages, so that a message that is sent twice is processed once.

A source keeps a window of the newest ids: a second `send` with the same id sends nothing. A receiver with `deduplicate`
keeps one, too, because the next life of a source, or another source, does not know the ids of the first one.

Both windows are in memory. After a crash of a receiver, a copy of a message that it had acknowledged comes to the
application. Keep ids with your own data if that matters.
"""

from asyncio import Future
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from stablecast.client.batch import Batch
from stablecast.client.inbox import Inbox

ID_PROPERTY: Final = "JMSMessageID"
"""The property with the id of a message; the documented name."""

MAX_IDS: Final = 10_000
"""Ids of a window. Beyond that, the oldest is forgotten."""

MAX_ID_BYTES: Final = 256
"""Longest id, in bytes of UTF-8."""


class SentIds:
    """The newest ids of a source with their numbers. A number is a future while its message waits to be sent."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, Future[int | None]] = OrderedDict()

    def find(self, message_id: str) -> "Future[int | None] | None":
        """Return the number of the message with this id, None if the window has none.

        The result is None if that message was not sent after all. Raises TypeError, ValueError for an unusable id.
        """
        if not isinstance(message_id, str):
            raise TypeError(f"the id of a message must be a str, not {type(message_id).__name__}")
        if not 1 <= len(message_id.encode()) <= MAX_ID_BYTES:
            raise ValueError(f"the id of a message has 1 to {MAX_ID_BYTES} bytes, not {len(message_id.encode())}")
        return self._numbers.get(message_id)

    def begin(self, message_id: str, number: "Future[int | None]") -> None:
        """Note that a message with this id is being sent."""
        self._numbers[message_id] = number
        while len(self._numbers) > MAX_IDS:
            self._numbers.popitem(last=False)

    def end(self, message_id: str, sending: "Future[int | None]", number: int | None) -> None:
        """Tell the calls that wait the number of the message; None forgets the id, because the message was not sent.

        The window may have forgotten the id meanwhile, and another call may send a message with it.
        """
        if number is None and self._numbers.get(message_id) is sending:
            del self._numbers[message_id]
        sending.set_result(number)


class DistinctInbox(Inbox[Batch]):
    """A queue that hands over the first message of each id, and consumes later copies.

    Copies are compared when the application asks for the next message, as in `hot_inbox`, and for the same reason.
    """

    def __init__(self, on_room: Callable[[], None]) -> None:
        super().__init__(on_room)
        self._seen: OrderedDict[object, tuple[int, int]] = OrderedDict()

    def next_batch(self, most: int | None = None) -> Batch | None:
        """Return the next messages that are no copies, as an inbox does; None if nothing waits."""
        while (batch := super().next_batch(most)) is not None:
            count, fresh = self._alike(batch)
            if count < batch.count:
                self.put_back(batch.part(count, batch.count))
                batch.cut(count)
                self.handed = count
            if fresh:
                self._note(batch)
                return batch
            batch.settle(batch.count)
        return None

    def _alike(self, batch: Batch) -> tuple[int, bool]:
        """Return how many messages at the beginning are all new, or all copies, and which of the two."""
        here: dict[object, tuple[int, int]] = {}
        fresh = True
        for index in range(batch.count):
            known, place = batch.properties(index).get(ID_PROPERTY), _place(batch, index)
            first = known is None or here.get(known, self._seen.get(known, place)) == place
            if index == 0:
                fresh = first
            elif first is not fresh:
                return index, fresh
            if known is not None:
                here.setdefault(known, place)
        return batch.count, fresh

    def _note(self, batch: Batch) -> None:
        for index in range(batch.count):
            known = batch.properties(index).get(ID_PROPERTY)
            if known is not None:
                self._seen[known] = _place(batch, index)
        while len(self._seen) > MAX_IDS:
            self._seen.popitem(last=False)


def _place(batch: Batch, index: int) -> tuple[int, int]:
    """Return what tells a copy from the same message that comes again."""
    return batch.incarnation, batch.numbers(index)[1]
