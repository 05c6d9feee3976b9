"""Messages whose receipt and processing have spans of OpenTelemetry."""

from collections.abc import Callable
from typing import Self

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import Span

from stablecast.client.batch import Batch
from stablecast.client.iteration import InboxReader, MessageIterator
from stablecast.client.message import Message
from stablecast.client.message_spans import MessageSpans, context_of


class InstrumentedMessage(Message):
    """A message with a span for `async with message:`."""

    __slots__ = ("_outer", "_sender", "_span", "_spans")

    def __init__(self, payload: bytes, batch: Batch, index: int, spans: MessageSpans, sender: contexts.Context) -> None:
        """Make the message with this index in a batch; it carries the context of its `sender`."""
        super().__init__(payload, batch, index)
        self._sender = sender
        self._spans = spans
        self._span: Span | None = None
        self._outer: contexts.Context | None = None

    async def __aenter__(self) -> Self:
        """Take the message as `Message` does, and begin to process it in a span."""
        await super().__aenter__()
        self._span = self._spans.process(self.topic, self._sender, self.key)
        self.enter_span()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Settle the message as `Message` does, and end its span."""
        self.leave_span()
        span, self._span = self._span, None
        if span is not None:
            self._spans.end(span, error)
        return await super().__aexit__(kind, error, trace)

    def enter_span(self) -> None:
        """Make the span of the block the current one of this task or thread."""
        if self._span is not None:
            self._outer = contexts.get_current()
            contexts.attach(trace.set_span_in_context(self._span))

    def leave_span(self) -> None:
        if self._outer is not None:  # No token: the facade without asyncio leaves a block in another context.
            contexts.attach(self._outer)
            self._outer = None


class InstrumentedIterator(MessageIterator):
    """A loop that makes a receive span for each message."""

    __slots__ = ("_settled", "_spans")

    def __init__(self, spans: MessageSpans, settled: bool, reader: InboxReader) -> None:
        """Begin a loop where the previous one ended; `settled` takes each message for the application."""
        super().__init__(reader)
        self._spans = spans
        self._settled = settled

    async def __anext__(self) -> Message:
        """Return the next message as other loops do, and make its receive span."""
        plain = await super().__anext__()
        inbox = self._reader.inbox
        assert inbox.current is not None
        sender = context_of(plain.properties)
        message = InstrumentedMessage(plain.payload, inbox.current, inbox.handed - 1, self._spans, sender)
        self._spans.end(self._spans.receive(message.topic, [sender], inbox.current.arrived_ns, message.key))
        if self._settled:
            message.take()
        return message

    async def batch(self, most: int) -> Batch | None:
        """Return the next batch as `MessageIterator.batch`, and make its receive span."""
        batch = await super().batch(most)
        if batch is not None:
            senders = (context_of(batch.properties(index)) for index in range(batch.count))
            self._spans.end(self._spans.receive(batch.topic, senders, batch.arrived_ns, count=batch.count))
        return batch


def processing(spans: MessageSpans, on_message: Callable[[Message], object]) -> Callable[[Message], object]:
    """Return a callback that calls `on_message` in a process span."""

    def call(message: Message) -> None:
        span = spans.process(message.topic, context_of(message.properties), message.key)
        token = contexts.attach(trace.set_span_in_context(span))
        try:
            on_message(message)
        except BaseException as error:
            spans.end(span, error)
            raise
        else:
            spans.end(span)
        finally:
            contexts.detach(token)

    return call
