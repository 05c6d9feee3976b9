"""Topics with typed payloads: send and receive objects of one type.

    orders = Topic("orders", Order)
    source = await orders.source(context, stores=["127.0.0.1:14567"])
    await source.send(Order(item="apples", count=3))
    async for message in orders.receiver(context, session_id=7):
        print(message.value.item)

`Order` may be a dataclass, an attrs class, a msgspec.Struct, a pydantic model, or any type that msgspec knows. A
message carries the name of its schema in a property, so that a receiver does not read one type as another. Messages
with properties leave in blocks of their own, so raw bytes over `Context.source` stay faster.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Generic, TypeVar

import attrs

from stablecast.client import Context, Message, PayloadError, Receiver, Sent, Source
from stablecast.client.redelivery import bury
from stablecast.transports.wire.properties import Value
from stablecast.typed.payload_codec import PayloadCodec, PayloadFormat

T = TypeVar("T")

SCHEMA_PROPERTY: Final = "schema"
"""The property that names the schema of a payload."""


@attrs.frozen
class TypedMessage(Generic[T]):
    """A message with its object.

    Attributes:
        value: The object.
        message: The message of the receiver: its number, properties, acknowledgement.
    """

    value: T
    message: Message

    def ack(self) -> None:
        """Acknowledge this message and all before it. Raises like `Message.ack`."""
        self.message.ack()


@attrs.frozen
class TypedSource(Generic[T]):
    """A source that sends objects.

    Attributes:
        source: The source of bytes, for everything but sending.
    """

    source: Source
    _codec: PayloadCodec[T]

    async def send(self, value: T, properties: Mapping[str, Value] | None = None) -> Sent:
        """Send an object; wait for credit while the flight is full. Raises like `Source.send`, and TypeError."""
        named = {**(properties or {}), SCHEMA_PROPERTY: self._codec.schema}
        return await self.source.send(self._codec.encode(value), named)

    async def __aenter__(self) -> "TypedSource[T]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.source.close()


@attrs.frozen
class TypedReceiver(Generic[T]):
    """A receiver that yields objects.

    Attributes:
        receiver: The receiver of bytes, for everything but reading.
    """

    receiver: Receiver
    _codec: PayloadCodec[T]
    _dead_letters: Source | None

    async def __aiter__(self) -> AsyncGenerator[TypedMessage[T], None]:
        """Yield the messages. A message is consumed when the loop asks for the next one.

        Raises:
            PayloadError: A payload cannot be read, and there are no dead letters.
        """
        async for message in self.receiver:
            try:
                value = self._codec.decode(message.payload, message.properties.get(SCHEMA_PROPERTY))
            except PayloadError as error:
                await self._put_aside(message, error)
                continue
            yield TypedMessage(value, message)

    async def _put_aside(self, message: Message, error: PayloadError) -> None:
        """Send a message to the dead letters, and wait until it is stable there."""
        text = f"message {message.sequence_number} of '{self.receiver.topic}' cannot be read: {error}"
        if self._dead_letters is None:
            raise PayloadError(f"{text}; give the receiver dead_letters=source, to put such messages aside") from error
        await bury(message, self._dead_letters, text, message.attempt)

    async def __aenter__(self) -> "TypedReceiver[T]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.receiver.close()


class Topic(Generic[T]):
    """A topic whose messages are objects of one type.

    Attributes:
        name: The topic.
        codec: The conversion of its payloads.
    """

    def __init__(self, name: str, type_: type[T], payload: PayloadFormat = PayloadFormat.JSON) -> None:
        """Declare a topic. Raises TypeError if objects of the type cannot be converted."""
        self.name = name
        self.codec = PayloadCodec(type_, payload)

    async def source(self, context: Context, **more: Any) -> TypedSource[T]:
        """Make a source and wait until it may send. Takes the arguments of `Context.source`, and raises as it does."""
        return TypedSource(await context.source(self.name, **more), self.codec)

    def receiver(self, context: Context, dead_letters: Source | None = None, **more: Any) -> TypedReceiver[T]:
        """Make a receiver. Takes the arguments of `Context.receiver` but `on_message`, and raises as it does.

        Args:
            context: The context.
            dead_letters: A source for messages that cannot be read. They are consumed when they are stable there.
                Without it such a message ends the loop.
            more: The arguments of `Context.receiver`.
        """
        return TypedReceiver(context.receiver(self.name, **more), self.codec, dead_letters)
