"""A source that adds properties to each message: the time of sending, and the context of its span of OpenTelemetry.

A message has a span for its sending, and one until it is stable. The class is one of its own, because a plain source
must not even ask whether there is something to add.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from stablecast.client.message import SENT_PROPERTY
from stablecast.client.outgoing_messages import Payload
from stablecast.client.source import Sent, Source
from stablecast.runtime import machine
from stablecast.transports.wire.properties import Value

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

    from stablecast.client.message_spans import MessageSpans

Annotation = Callable[[], Mapping[str, Value]]
"""Returns properties to add to the message that is sent now."""

MILLISECOND: Final = 1_000_000


def timestamp() -> Mapping[str, Value]:
    """Return the documented property with the time of sending, in ms since the epoch."""
    return {SENT_PROPERTY: machine.clock.wall_ns() // MILLISECOND}


class Annotated(dict[str, Value]):
    """Properties that have got their additions."""


class AnnotatedSource(Source):
    """A source that adds properties to each message. Properties of the application with the same name stay.

    A message that the flight had no room for has no span.
    """

    annotations: Sequence[Annotation] = ()
    spans: "MessageSpans | None" = None

    def try_send(self, payload: Payload, properties: Mapping[str, Value] | None = None) -> int | None:
        """Send like `Source.try_send`, with the added properties."""
        return self._now(super().try_send, payload, properties)

    def try_send_as(self, payload: Payload, properties: Mapping[str, Value] | None = None, **more: Any) -> int | None:
        """Send like `Source.try_send_as`, with the added properties."""
        return self._now(super().try_send_as, payload, properties, **more)

    async def send(self, payload: Payload, properties: Mapping[str, Value] | None = None, **more: Any) -> Sent:
        """Send like `Source.send`, with the added properties. A message that waits has the time of the call.

        A span has the time of waiting for the stores and for room.
        """
        named = self._annotated(properties)
        if self.spans is None or more.get("id") is not None:
            return await super().send(payload, named, **more)  # With an id, it calls this method if that is a new one.
        span = self.spans.send(self.topic, named)
        try:
            sent = await super().send(payload, named, **more)
        except BaseException as error:
            self.spans.end(span, error)
            raise
        key = self._sent(self.spans, span, sent.number)
        return InstrumentedSent(sent.number, self, self.spans, key, span.get_span_context(), machine.clock.wall_ns())

    async def _send_list(self, messages: Sequence[Payload]) -> int | None:
        number = None
        for payload in messages:
            number = await self._send(payload)
        return number

    def _now(
        self, send: Callable[..., int | None], payload: Payload, properties: Mapping[str, Value] | None, **more: Any
    ) -> int | None:
        named = self._annotated(properties)
        if self.spans is None or named is properties:  # `send` has made the span.
            return send(payload, named, **more)
        span = self.spans.send(self.topic, named)
        try:
            number = send(payload, named, **more)
        except BaseException as error:
            self.spans.end(span, error)
            raise
        if number is not None:  # Without room nothing was sent; a span that does not end is not exported.
            self._sent(self.spans, span, number)
        return number

    def _annotated(self, properties: Mapping[str, Value] | None) -> Annotated:
        if isinstance(properties, Annotated):
            return properties
        added: dict[str, Value] = {}
        for annotation in self.annotations:
            added |= annotation()
        return Annotated(added | dict(properties or {}))

    def _sent(self, spans: "MessageSpans", span: "Span", number: int) -> str:
        """End the span of a message, and return its key."""
        key = f"{self.life:016x}-{number}"
        span.set_attribute("messaging.message.id", key)
        spans.end(span)
        return key


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
