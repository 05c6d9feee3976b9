"""Messages as handlers of FastStream get them, and the parsers that make them."""

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from faststream.message import StreamMessage, decode_message

from stablecast.client import Message, Source
from stablecast.client.redelivery import bury

if TYPE_CHECKING:
    from faststream._internal.basic_types import DecodedMessage

RawT = TypeVar("RawT")
logger = logging.getLogger("stablecast")

REPLY_PROPERTY = "reply_to"
CORRELATION_PROPERTY = "correlation_id"
CONTENT_PROPERTY = "content-type"


class _Settled(StreamMessage[RawT]):
    """What is settled as a whole: one message, or a batch.

    Attributes:
        dead_letters: The source of rejected messages; without it they are dropped.
    """

    dead_letters: Source | None = None

    @property
    def messages(self) -> Sequence[Message]:
        raise NotImplementedError

    async def ack(self) -> None:
        """Acknowledge the messages, unless they are settled."""
        if self.committed is None:
            for message in self.messages:
                message.ack()
        await super().ack()

    async def nack(self, delay: float | None = None) -> None:
        """Let the messages come again after `delay` seconds; None takes that of the subscriber."""
        if self.committed is None:
            for message in reversed(self.messages):  # Each one comes again before those that wait.
                message.nack(delay, sys.exc_info()[1])
        await super().nack()

    async def reject(self) -> None:
        """Send the messages to the dead letters of their subscriber, and acknowledge them."""
        if self.committed is None:
            for message in self.messages:
                await reject(message, self.dead_letters)
        await super().reject()


class StablecastMessage(_Settled[Message]):
    """One message.

    Attributes:
        raw_message: The message of the client: its source, number, key, attempt.
    """

    @property
    def messages(self) -> Sequence[Message]:
        return [self.raw_message]


class StablecastBatchMessage(_Settled[Sequence[Message]]):
    """Several messages, which are settled together."""

    @property
    def messages(self) -> Sequence[Message]:
        return self.raw_message


async def reject(message: Message, dead_letters: Source | None) -> None:
    """Send a message to the dead letters, and acknowledge it when it is stable there."""
    error = sys.exc_info()[1]
    reason = "rejected" if error is None else f"{type(error).__name__}: {error}"
    if dead_letters is None:
        logger.warning("%r is dropped: %s; give the subscriber dead_letters to keep such messages", message, reason)
    else:
        await bury(message, dead_letters, reason, message.attempt)
    message.ack()


class StablecastParser:
    """Make messages of FastStream from those of the client.

    Attributes:
        dead_letters: The source of rejected messages.
    """

    def __init__(self) -> None:
        """Parse messages; there are no dead letters yet."""
        self.dead_letters: Source | None = None

    async def parse_message(self, message: Message) -> StablecastMessage:
        """Return what the handlers get; headers are the properties of the message."""
        headers: dict[str, Any] = message.properties
        parsed = StablecastMessage(
            raw_message=message,
            body=message.payload,
            headers=headers,
            reply_to=_text(headers, REPLY_PROPERTY) or "",
            content_type=_text(headers, CONTENT_PROPERTY),
            message_id=message.key,
            correlation_id=_text(headers, CORRELATION_PROPERTY),
        )
        parsed.dead_letters = self.dead_letters
        return parsed

    async def decode_message(self, msg: StreamMessage[Message]) -> "DecodedMessage":
        return decode_message(msg)


class StablecastBatchParser(StablecastParser):
    """Make batches of FastStream from messages of the client."""

    async def parse_batch(self, messages: Sequence[Message]) -> StablecastBatchMessage:
        headers: list[dict[str, Any]] = [message.properties for message in messages]
        first = headers[0] if headers else {}
        parsed = StablecastBatchMessage(
            raw_message=messages,
            body=[message.payload for message in messages],
            headers=first,
            batch_headers=headers,
            reply_to=_text(first, REPLY_PROPERTY) or "",
            content_type=_text(first, CONTENT_PROPERTY),
            message_id=f"{messages[0].key}..{messages[-1].number}" if messages else None,
            correlation_id=_text(first, CORRELATION_PROPERTY),
        )
        parsed.dead_letters = self.dead_letters
        return parsed

    async def decode_batch(self, msg: StreamMessage[Sequence[Message]]) -> list["DecodedMessage"]:
        return [decode_message(await self.parse_message(message)) for message in msg.raw_message]


def _text(headers: dict[str, Any], name: str) -> str | None:
    """Return a header if it is a text, because peers may send any type."""
    known = headers.get(name)
    return known if isinstance(known, str) else None
