"""Messages that are not plain payloads with credit: what they get before they are put into a block."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from stablecast.client.argument_checks import Payload, check_properties, octets_of
from stablecast.core.machine import serial
from stablecast.core.source.outbox import Extra
from stablecast.transports.codec import fragments
from stablecast.transports.wire import properties as wire_properties
from stablecast.transports.wire.properties import Value

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from stablecast.client.message_spans import MessageSpans

Annotation = Callable[[], Mapping[str, Value]]
"""Returns properties to add to the message that is sent now."""


@attrs.define
class Parcel:
    """A message that is not sent by the fast path.

    Attributes:
        payload: Its payload, with its properties behind it.
        extra: What a plain message has not, None for a plain one.
        tag: An object of the application.
        number_info: Report its number, even if it is not cut into pieces.
        span: The span of its sending, None without tracing.
    """

    payload: bytes
    extra: Extra | None
    tag: object
    number_info: bool
    span: "Span | None"


class Packing:
    """What each message of a source gets.

    Attributes:
        spans: Makes the spans of messages, None without tracing.
        adds: Each message gets properties or a span, so none is plain.
        room: Bytes of the largest piece with its headers.
    """

    def __init__(self, topic: str, annotations: Sequence[Annotation], spans: "MessageSpans | None") -> None:
        """Add the properties of all `annotations`, and a span of `spans` if there are some."""
        self._topic = topic
        self._annotations = annotations
        self.spans = spans
        self.adds = bool(annotations) or spans is not None
        self.room = 0

    def pack(
        self,
        payload: Payload,
        properties: Mapping[str, Value] | None = None,
        tag: object = None,
        number_info: bool = False,
        hot_number: int | None = None,
    ) -> Parcel:
        """Prepare a message: with the properties that each message gets, and with its span."""
        if hot_number is not None and not 0 <= hot_number < serial.MODULUS:
            raise ValueError(f"a hot number is from 0 to {serial.MODULUS - 1}, not {hot_number}")
        octets, block, span = octets_of(payload), b"", None
        if properties and properties.__class__ is not dict:
            check_properties(properties)
        if self.adds:
            named: dict[str, Value] = {}
            for annotation in self._annotations:
                named |= annotation()
            properties = named | dict(properties or {})
            span = None if self.spans is None else self.spans.send(self._topic, properties)
        if properties:
            try:
                block = wire_properties.block(properties)
            except BaseException as error:
                self.end(span, error)
                raise
            octets += block
        pieces = fragments.count(len(octets), len(block), self.room, hot_number)
        plain = pieces == 1 and not block and hot_number is None
        return Parcel(octets, None if plain else Extra(len(block), hot_number, pieces), tag, number_info, span)

    def end(self, span: "Span | None", error: BaseException) -> None:
        """End the span of a message that was not sent."""
        if span is not None and self.spans is not None:
            self.spans.end(span, error)
