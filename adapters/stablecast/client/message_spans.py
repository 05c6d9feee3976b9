"""Spans of OpenTelemetry for messages, by its semantic conventions for messaging.

| span | kind | begins | ends |
|---|---|---|---|
| `send orders` | PRODUCER | when the application calls | when the message has left |
| `stable orders` | CLIENT | when the message has left | when a quorum of the stores has it |
| `receive orders` | CLIENT | when the receiver has read the message | when the application gets it |
| `process orders` | CONSUMER | at `async with message:` or `on_message` | at the end of the block or call |

The context of the send span travels in the properties `traceparent` and `tracestate`, written and read by the
program's propagator. A process span is a child of the span that is current, else of the send span; it has a link to the
send span in both cases. A stable span is a child of its send span.

This module needs the package `opentelemetry-api`. It is imported only by programs that have set a tracer provider.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from itertools import islice
from typing import Final

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer, TracerProvider
from opentelemetry.util.types import AttributeValue

from stablecast.runtime import machine
from stablecast.transports.wire.properties import Value

SYSTEM: Final = "stablecast"
"""The value of `messaging.system`."""

CREATION_PROPERTY: Final = "traceparent"
"""The property with the context of the span that created the message; the name of the W3C's Trace Context."""

NO_CONTEXT: Final = Context()
"""The context of a message that carries none."""

MAX_LINKS: Final = 128
"""Links of a span at most, as the SDK limits them."""


class MessageSpans:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._now = machine.clock.wall_ns

    def send(self, topic: str, properties: MutableMapping[str, Value]) -> Span:
        """Begin to send a message; put the context of its span into `properties`.

        A context that the application put there stays, and the span has a link to it.
        """
        creation = _creation_of(properties)
        kind = SpanKind.PRODUCER if creation is None else SpanKind.CLIENT
        span = self._begin("send", topic, kind, links=() if creation is None else (creation,))
        if creation is None:
            propagate.inject(properties, trace.set_span_in_context(span))
        return span

    def sent(self, span: Span, key: str) -> None:
        """End the span of a message that was sent, and has this key now."""
        span.set_attribute("messaging.message.id", key)
        self.end(span)

    def stable(self, topic: str, key: str, sent: SpanContext, since_ns: int) -> Span:
        """Begin to wait for the stability of a message that was sent at `since_ns`, in ns since the epoch."""
        parent = trace.set_span_in_context(trace.NonRecordingSpan(sent))
        return self._begin("stable", topic, SpanKind.CLIENT, key, parent=parent, since_ns=since_ns)

    def receive(
        self,
        topic: str,
        senders: Iterable[Context],
        since_ns: int,
        key: str = "",
        count: int | None = None,
    ) -> Span:
        """Begin to hand messages to the application.

        Args:
            topic: Their topic.
            senders: The context that each message carries (`context_of`).
            since_ns: The time at which they were read, in ns since the epoch.
            key: The key of a single message.
            count: The number of messages of a batch.
        """
        links = islice((link for link in map(_link, senders) if link is not None), MAX_LINKS)
        span = self._begin("receive", topic, SpanKind.CLIENT, key, links=links, since_ns=since_ns)
        if count is not None:
            span.set_attribute("messaging.batch.message_count", count)
        return span

    def process(self, topic: str, carried: Context, key: str) -> Span:
        """Begin to process a message, which carries this context, in the current span, else in that of its sender."""
        creation = _link(carried)
        ambient = trace.get_current_span().get_span_context().is_valid
        links = () if creation is None else (creation,)
        return self._begin("process", topic, SpanKind.CONSUMER, key, links=links, parent=None if ambient else carried)

    def end(self, span: Span, error: BaseException | None = None) -> None:
        if error is not None and span.is_recording():
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end(self._now())

    def _begin(
        self,
        operation: str,
        topic: str,
        kind: SpanKind,
        key: str = "",
        *,
        links: Iterable[Link] = (),
        parent: Context | None = None,
        since_ns: int | None = None,
    ) -> Span:
        attributes: dict[str, AttributeValue] = {
            "messaging.system": SYSTEM,
            "messaging.operation.name": operation,
            "messaging.destination.name": topic,
        }
        if operation != "stable":  # The conventions have no type for it.
            attributes["messaging.operation.type"] = operation
        if key:
            attributes["messaging.message.id"] = key
        return self._tracer.start_span(
            f"{operation} {topic}",
            context=parent,
            kind=kind,
            attributes=attributes,
            links=tuple(links),
            start_time=self._now() if since_ns is None else since_ns,
        )


def spans_of(provider: TracerProvider | None) -> MessageSpans | None:
    """Return the spans of a tracer provider, None: of that of the program; None if it records nothing."""
    provider = provider or trace.get_tracer_provider()
    if isinstance(provider, trace.NoOpTracerProvider | trace.ProxyTracerProvider):
        return None
    tracer = provider.get_tracer("stablecast")
    return None if isinstance(tracer, trace.NoOpTracer) else MessageSpans(tracer)


def context_of(properties: Mapping[str, Value]) -> Context:
    """Return the context in the properties of a message; peers may send any type, and propagators read text only."""
    if CREATION_PROPERTY not in properties:
        return NO_CONTEXT
    return propagate.extract({name: value for name, value in properties.items() if isinstance(value, str)}, Context())


def _creation_of(properties: Mapping[str, Value]) -> Link | None:
    return _link(context_of(properties)) if CREATION_PROPERTY in properties else None


def _link(carried: Context) -> Link | None:
    context = trace.get_current_span(carried).get_span_context()
    return Link(context) if context.is_valid else None
