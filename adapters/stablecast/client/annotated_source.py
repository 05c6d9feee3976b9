"""A source that adds properties to each message: the time of sending, the trace context.

It is a class of its own, because a plain source must not even ask whether there is something to add.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from stablecast.client.message import SENT_PROPERTY
from stablecast.client.outgoing_messages import Payload
from stablecast.client.source import Sent, Source
from stablecast.runtime import machine
from stablecast.transports.wire.properties import Value

Annotation = Callable[[], Mapping[str, Value]]
"""Returns properties to add to the message that is sent now."""

MILLISECOND: Final = 1_000_000


def timestamp() -> Mapping[str, Value]:
    """Return the documented property with the time of sending, in ms since the epoch."""
    return {SENT_PROPERTY: machine.clock.wall_ns() // MILLISECOND}


class AnnotatedSource(Source):
    """A source that adds properties to each message. Properties of the application with the same name stay."""

    annotations: Sequence[Annotation] = ()

    def try_send(self, payload: Payload, properties: Mapping[str, Value] | None = None) -> int | None:
        """Send like `Source.try_send`, with the added properties."""
        return super().try_send(payload, self._annotated(properties))

    def try_send_as(self, payload: Payload, properties: Mapping[str, Value] | None = None, **more: Any) -> int | None:
        """Send like `Source.try_send_as`, with the added properties."""
        return super().try_send_as(payload, self._annotated(properties), **more)

    async def send(self, payload: Payload, properties: Mapping[str, Value] | None = None, **more: Any) -> Sent:
        """Send like `Source.send`, with the added properties. A message that waits has the time of the call."""
        return await super().send(payload, self._annotated(properties), **more)

    async def _send_list(self, messages: Sequence[Payload]) -> int | None:
        number = None
        for payload in messages:
            number = await self._send(payload)
        return number

    def _annotated(self, properties: Mapping[str, Value] | None) -> "Annotated":
        if isinstance(properties, Annotated):
            return properties
        added: dict[str, Value] = {}
        for annotation in self.annotations:
            added |= annotation()
        return Annotated(added | dict(properties or {}))


class Annotated(dict[str, Value]):
    """Properties that have got their additions."""
