"""A source whose messages have spans of OpenTelemetry: one to send each, and one until it is stable.

It is a class of its own, so that a plain source does not even ask whether there are spans.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from stablecast.client.annotated_source import Annotated, AnnotatedSource
from stablecast.client.outgoing_messages import Payload
from stablecast.client.source import Sent
from stablecast.runtime import machine
from stablecast.transports.wire.properties import Value

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

    from stablecast.client.message_spans import MessageSpans


class InstrumentedSource(AnnotatedSource):
    """A source with spans. A message that the flight had no room for has none."""

    spans: "MessageSpans"

    def try_send(self, payload: Payload, properties: Mapping[str, Value] | None = None) -> int | None:
        """Send like `Source.try_send`, in a span."""
        if isinstance(properties, Annotated):
            return super().try_send(payload, properties)
        named = self._annotated(properties)
        return self._now(named, lambda: super(InstrumentedSource, self).try_send(payload, named))

    def try_send_as(self, payload: Payload, properties: Mapping[str, Value] | None = None, **more: Any) -> int | None:
        """Send like `Source.try_send_as`, in a span."""
        if isinstance(properties, Annotated):
            return super().try_send_as(payload, properties, **more)
        named = self._annotated(properties)
        return self._now(named, lambda: super(InstrumentedSource, self).try_send_as(payload, named, **more))

    async def send(self, payload: Payload, properties: Mapping[str, Value] | None = None, **more: Any) -> Sent:
        """Send like `Source.send`, in a span that has the time of waiting for the stores and for room."""
        if more.get("id") is not None:
            return await super().send(payload, properties, **more)  # It calls this method if the message is a new one.
        named = self._annotated(properties)
        span = self.spans.send(self.topic, named)
        try:
            sent = await super().send(payload, named, **more)
        except BaseException as error:
            self.spans.end(span, error)
            raise
        self._sent(span, sent.number)
        key = self._key_of(sent.number)
        return InstrumentedSent(sent.number, self, self.spans, key, span.get_span_context(), machine.clock.wall_ns())

    def _now(self, named: Annotated, send: Callable[[], int | None]) -> int | None:
        span = self.spans.send(self.topic, named)
        try:
            number = send()
        except BaseException as error:
            self.spans.end(span, error)
            raise
        if number is not None:  # Without room nothing was sent; a span that does not end is not exported.
            self._sent(span, number)
        return number

    def _sent(self, span: "Span", number: int) -> None:
        span.set_attribute("messaging.message.id", self._key_of(number))
        self.spans.end(span)

    def _key_of(self, number: int) -> str:
        return f"{self.life:016x}-{number}"


@attrs.frozen
class InstrumentedSent(Sent):
    """A message that was sent in a span."""

    _spans: "MessageSpans" = attrs.field(repr=False)
    _key: str = attrs.field(repr=False)
    _context: "SpanContext" = attrs.field(repr=False)
    _since_ns: int = attrs.field(repr=False)

    async def stable(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as `Sent.stable`
        """Wait as `Sent.stable`, in a span that begins when the message was sent."""
        span = self._spans.stable(self.source.topic, self._key, self._context, self._since_ns)
        try:
            await super().stable(timeout)
        except BaseException as error:
            self._spans.end(span, error)
            raise
        self._spans.end(span)
