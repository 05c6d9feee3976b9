"""The way of messages from sessions to the application: one inbox, read by one task or emptied by a callback.

A receiver of one topic has a delivery of its own. The receivers that a pattern makes share one, so that the application
reads all topics at one place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from stablecast.client.batch import Batch
from stablecast.client.callbacks import CallbackDelivery
from stablecast.client.hot_inbox import HotInbox
from stablecast.client.inbox import FairInbox, Inbox
from stablecast.client.iteration import BatchIterator, InboxReader, MessageIterator, SettledIterator
from stablecast.client.message import Message
from stablecast.client.message_ids import DistinctInbox
from stablecast.client.redelivery import Redeliverer, Redelivery
from stablecast.client.session import ClientSession
from stablecast.core.errors import MisuseError
from stablecast.core.protocol.events import HotNumbersMissed
from stablecast.core.receiver.hot_failover import HotFailover

if TYPE_CHECKING:
    from stablecast.client.message_spans import MessageSpans


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
        redeliverer: The messages that the application settles one by one.
        alone: The loop of `anext`, which takes single messages.
    """

    def __init__(  # noqa: PLR0913 - each is a choice of the application
        self,
        whose: str,
        patience: float,
        on_message: Callable[[Message], object] | None,
        *,
        shared: bool = False,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        refusal: str = "",
        deduplicate: bool = False,
        explicit: bool = False,
        missed: Callable[[HotNumbersMissed], None] | None = None,
        numbers: HotFailover | None = None,
        spans: "MessageSpans | None" = None,
    ) -> None:
        """Deliver to `on_message`, or to the task that iterates.

        Args:
            whose: The receiver in errors and reports, for example `receiver 'orders'`.
            patience: The interval of acknowledgements, in seconds.
            on_message: The application's callback.
            shared: Whether the delivery goes on when a receiver leaves it.
            auto_ack: False takes each message for the application, which settles it.
            redelivery: What happens to messages that the application does not acknowledge.
            refusal: The reason why the application cannot settle messages one by one; empty if it can.
            deduplicate: Whether later copies of a message with an id are consumed without the application.
            explicit: Whether the receivers acknowledge as the application asks.
            missed: Called with hot numbers that no source brought; None: there are no hot numbers.
            numbers: The hot numbers that the application got before in this run; None: none.
            spans: Makes the spans of the messages; None: they have none.
        """
        if missed is not None and deduplicate:
            raise MisuseError(f"{whose} gets each hot number once: leave out deduplicate")
        self.hot = None if missed is None else HotInbox(self._resume, missed, numbers or HotFailover())
        kind = DistinctInbox if deduplicate else FairInbox if shared else Inbox
        self.inbox: Inbox[Batch] = kind(self._resume)
        if self.hot is not None:
            self.inbox = self.hot
        direct = self.hot is None and not deduplicate
        self.deliver, unread = self.inbox.put, ""
        if on_message is not None and spans is not None:
            on_message = _processing(spans, on_message)
        if on_message is not None:
            call = on_message if auto_ack and redelivery is None else self._settling(on_message, auto_ack=auto_ack)
            calls = CallbackDelivery(call, whose, self.inbox, patience)
            self.deliver = calls.deliver if direct else calls.deliver_queued
            unread = f"{whose} gives its messages to on_message: it cannot be iterated, too"
        if self.hot is not None:
            refusal = f"{whose} gets each hot number once: it cannot deliver a message again"
        iterator = _iterator_of(spans, auto_ack=auto_ack)
        self.reader = InboxReader(self.inbox, patience, whose, unread, iterator)
        self.alone = iterator(self.reader)
        self.alone.is_loop = False
        self._auto_ack, self._whose, self._calls = auto_ack, whose, on_message is not None
        if not auto_ack and refusal:
            raise MisuseError(refusal)
        self.redeliverer = Redeliverer(
            self.inbox,
            self._deliver_again,
            redelivery,
            refusal,
            self.reader.fail,
            explicit=explicit,
            reads=on_message is None,
        )
        self.reader.on_left = self.redeliverer.left
        self._shared = shared
        self._receivers: dict[Paused, None] = {}

    def add(self, receiver: Paused) -> None:
        """Resume this receiver when the inbox has room again."""
        self._receivers[receiver] = None

    def remove(self, receiver: Paused) -> None:
        """Forget a receiver. The last receiver of a delivery that is not shared ends the iteration."""
        self._receivers.pop(receiver, None)
        if not self._shared:
            self.redeliverer.close()
            self.reader.close()

    def owners(self) -> Iterator[ClientSession]:
        """Yield the session of each batch with unconsumed messages."""
        for batch, _, _ in self.inbox.unconsumed():
            if isinstance(batch.owner, ClientSession):
                yield batch.owner

    def batches(self) -> BatchIterator:
        """Return runs of messages; the first is one message, and each next one may be twice as long."""
        if not self._auto_ack:
            raise MisuseError(f"{self._whose} has auto_ack=False: settle its messages one by one, not in batches")
        return BatchIterator(self.reader)

    def _deliver_again(self, batch: Batch) -> None:
        if self._calls:
            self.deliver(batch)
        else:
            self.inbox.put_first(batch)

    def _settling(self, on_message: Callable[[Message], object], *, auto_ack: bool) -> Callable[[Message], object]:
        """Return a call that takes the message, and refuses it if `on_message` raises and there is a policy."""

        def call(message: Message) -> None:
            if not auto_ack:
                message.take()
            try:
                on_message(message)
            except Exception as error:
                if self.redeliverer.policy is None:
                    raise
                message.refuse(error)

        return call

    def _resume(self) -> None:
        for receiver in tuple(self._receivers):
            receiver.resume()


class IteratedReceiver(ABC):
    """The reading side of every receiver: of a topic, of a pattern and of a member of a group."""

    _delivery: Delivery

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Acknowledge the consumed messages and leave all sources. Iteration ends."""

    def __aiter__(self) -> MessageIterator:
        """Begin a loop over messages, in order for each source. It continues where the previous loop ended.

        A message is consumed when its loop asks for the next one. A loop that was left in the middle of a message, by
        an exception, a cancellation or `break`, did not consume it: the next loop begins with that message, unless the
        application called its `ack` or `consumed`. The loop ends when the receiver is closed.

        Raises:
            RegistrationFailed: `reg_id` or `start_at` raised, or returned a value that is not usable.
            EndpointFailed: The receiver could not do what its protocol decided.
            MisuseError: Another task iterates, another event loop runs, or the receiver has `on_message`.
        """
        return self._delivery.reader.claim()

    async def __anext__(self) -> Message:
        """Return the next message; raises as a loop does.

        The caller of `anext` says that the message before is done: it is consumed by whatever asks next.
        """
        self._delivery.reader.check()
        return await self._delivery.alone.__anext__()

    def batches(self) -> BatchIterator:
        """Return the runs of messages, to iterate over. A run is consumed when the loop asks for the next.

        Ends and raises as a loop does, and a run in whose middle the loop was left comes again. The first run is
        one message, and each next one may be twice as long. An application that crashes on each start therefore still
        advances. A run has one topic and one life of a source. A group that divides by number has runs of one message.
        """
        return self._delivery.batches()


def _iterator_of(spans: "MessageSpans | None", *, auto_ack: bool) -> Callable[[InboxReader], MessageIterator]:
    """Return what makes the loops of a delivery."""
    if spans is None:
        return MessageIterator if auto_ack else SettledIterator
    from stablecast.client.instrumented_message import InstrumentedIterator  # noqa: PLC0415 - it needs OpenTelemetry

    return partial(InstrumentedIterator, spans, not auto_ack)


def _processing(spans: "MessageSpans", on_message: Callable[[Message], object]) -> Callable[[Message], object]:
    from stablecast.client.instrumented_message import processing  # noqa: PLC0415 - it needs OpenTelemetry

    return processing(spans, on_message)
