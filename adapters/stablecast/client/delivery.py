"""The way of messages from sessions to the application: one inbox, read by one task or emptied by a callback.

A receiver of one topic has a delivery of its own. The receivers that a pattern makes share one, so that the application
reads all topics at one place.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Protocol

from stablecast.client.callbacks import CallbackDelivery
from stablecast.client.hot_inbox import HotInbox
from stablecast.client.inbox import Inbox
from stablecast.client.iteration import FIRST_BATCH, TURN_MESSAGES, InboxReader, MessageIterator
from stablecast.client.message import Batch, Message
from stablecast.client.session import ClientSession
from stablecast.core.protocol.events import HotNumbersMissed


class Paused(Protocol):
    """A receiver that stops reading its streams while the inbox is full."""

    def resume(self) -> None:
        """Read the joined streams again, because the inbox has room."""


class Delivery:
    """The inbox of one or more receivers, and its reader.

    Attributes:
        inbox: The queue to which all sessions of the receivers deliver.
        hot: The same, if it hands over each hot number once; else None.
        deliver: Delivers a batch to the application, now or later.
        reader: The reading side of the inbox.
        alone: The loop of `anext`, which takes single messages.
    """

    def __init__(
        self,
        whose: str,
        patience: float,
        on_message: Callable[[Message], object] | None,
        *,
        shared: bool = False,
        missed: Callable[[HotNumbersMissed], None] | None = None,
    ) -> None:
        """Deliver to `on_message`, or to the task that iterates.

        Args:
            whose: The receiver in errors and reports, for example `receiver 'orders'`.
            patience: The interval of acknowledgements, in seconds.
            on_message: The application's callback.
            shared: Whether the delivery goes on when a receiver leaves it.
            missed: Called with hot numbers that no source brought; None: there are no hot numbers.
        """
        self.hot = None if missed is None else HotInbox(self._resume, missed)
        self.inbox: Inbox[Batch] = Inbox(self._resume) if self.hot is None else self.hot
        self.deliver, refusal = self.inbox.put, ""
        if on_message is not None:
            calls = CallbackDelivery(on_message, whose, self.inbox, patience)
            self.deliver = calls.deliver if self.hot is None else calls.deliver_queued
            refusal = f"{whose} gives its messages to on_message: it cannot be iterated, too"
        self.reader = InboxReader(self.inbox, patience, whose, refusal)
        self.alone = MessageIterator(self.reader)
        self._shared = shared
        self._receivers: dict[Paused, None] = {}

    def add(self, receiver: Paused) -> None:
        """Resume this receiver when the inbox has room again."""
        self._receivers[receiver] = None

    def remove(self, receiver: Paused) -> None:
        """Forget a receiver. The last receiver of a delivery that is not shared ends the iteration."""
        self._receivers.pop(receiver, None)
        if not self._shared:
            self.reader.close()

    def owners(self) -> Iterator[ClientSession]:
        """Yield the session of each batch with unconsumed messages."""
        for batch, _, _ in self.inbox.unconsumed():
            if isinstance(batch.owner, ClientSession):
                yield batch.owner

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Yield runs of messages; the first is one message, and each next one may be twice as long."""
        iterator, most = self.reader.claim(), FIRST_BATCH
        while (batch := await iterator.batch(most)) is not None:
            yield batch
            most = min(2 * most, 2 * TURN_MESSAGES)

    def _resume(self) -> None:
        for receiver in tuple(self._receivers):
            receiver.resume()
