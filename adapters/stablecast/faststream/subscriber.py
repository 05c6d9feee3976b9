"""Subscribers of a broker of FastStream: each has a receiver, and settles its messages one by one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faststream._internal.configs import SubscriberSpecificationConfig, SubscriberUsecaseConfig
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream._internal.endpoint.subscriber.mixins import ConcurrentMixin, TasksMixin
from faststream._internal.endpoint.utils import process_msg
from faststream.middlewares import AckPolicy
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as MessageSpec
from faststream.specification.schema import Operation, SubscriberSpec

from stablecast.client import GroupReceiver, Message, Receiver, Redelivery, StablecastError, WildcardReceiver
from stablecast.faststream.connection import StablecastBrokerConfig
from stablecast.faststream.message import StablecastBatchParser, StablecastMessage, StablecastParser
from stablecast.faststream.publisher import ReplyPublisher

if TYPE_CHECKING:
    from faststream._internal.endpoint.publisher import PublisherProto
    from faststream._internal.endpoint.subscriber.call_item import CallsCollection
    from faststream.message import StreamMessage

AnyReceiver = Receiver | GroupReceiver | WildcardReceiver


@dataclass(kw_only=True)
class BrokerSubscriberConfig(SubscriberUsecaseConfig):
    """The choices of a subscriber.

    Attributes:
        topic: The topic, or the pattern of topics.
        is_pattern: It is a pattern.
        delay: Seconds before a message comes again that was not acknowledged.
        attempts: Deliveries in all; None has no limit.
        dead_letters: The topic for messages after the last attempt, and for rejected ones; empty: none.
        most: Messages of a batch at most.
        linger: Seconds to wait for more messages of a batch after its first one.
        arguments: More arguments of `Context.receiver`.
    """

    _outer_config: StablecastBrokerConfig
    topic: str
    is_pattern: bool = False
    delay: float = 1.0
    attempts: int | None = None
    dead_letters: str = ""
    most: int = 1
    linger: float = 0.0
    arguments: dict[str, Any] = field(default_factory=dict)
    source: StablecastParser

    @property
    def ack_policy(self) -> AckPolicy:
        """Return the policy: that of the subscriber, else that of the broker, else `NACK_ON_ERROR`."""
        if self._ack_policy is not EMPTY:
            return self._ack_policy
        outer = self._outer_config.ack_policy
        return AckPolicy.NACK_ON_ERROR if outer is EMPTY else outer


@dataclass(kw_only=True)
class BrokerSubscriberSpecificationConfig(SubscriberSpecificationConfig):
    topic: str


class BrokerSubscriberSpecification(
    SubscriberSpecification[StablecastBrokerConfig, BrokerSubscriberSpecificationConfig]
):
    @property
    def topic(self) -> str:
        """Return the topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def channel_labels(self) -> list[str]:
        return [self.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        """Return the channel that it reads, by its name."""
        payload = resolve_payloads(self.get_payloads())
        return {
            self.name: SubscriberSpec(
                address=self.topic,
                description=self.description,
                operation=Operation(message=MessageSpec(title=f"{self.name}:Message", payload=payload), bindings=None),
                bindings=None,
            )
        }


class BrokerSubscriber(TasksMixin, SubscriberUsecase[Any]):
    """A subscriber of one topic, or of the topics of a pattern, which handles one message after the other."""

    _outer_config: StablecastBrokerConfig

    def __init__(
        self,
        config: BrokerSubscriberConfig,
        specification: BrokerSubscriberSpecification,
        calls: "CallsCollection[Any]",
    ) -> None:
        super().__init__(config, specification, calls)
        self._config = config
        self._receiver: AnyReceiver | None = None

    @property
    def topic(self) -> str:
        """Return the topic or pattern, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self._config.topic}"

    async def start(self) -> None:
        """Make the receiver, and begin to handle its messages. Raises like `Context.receiver`."""
        if self._receiver is not None:
            return
        await super().start()
        await self._open()
        self._post_start()
        if self.calls:
            self.add_task(self._handle_all, restart_on_failure=False)

    async def _open(self) -> None:
        config, connection = self._config, self._outer_config.connection
        aside = await connection.source(config.dead_letters) if config.dead_letters else None
        config.source.dead_letters = aside
        policy = Redelivery(config.delay, config.attempts, aside)
        if config.is_pattern:
            self._receiver = connection.context.receiver(
                pattern=self.topic, auto_ack=False, redelivery=policy, **config.arguments
            )
        else:
            self._receiver = connection.context.receiver(
                self.topic, auto_ack=False, redelivery=policy, stores=connection.stores, **config.arguments
            )

    async def stop(self) -> None:
        """Finish the messages in work, and close the receiver. Other messages stay unacknowledged."""
        await super().stop()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await receiver.close()

    async def _handle_all(self) -> None:
        """Handle messages until the receiver is closed."""
        try:
            async for message in self.reader():
                await self.consume_one(message)
        except StablecastError as error:
            self._log(logging.CRITICAL, f"the subscriber of '{self.topic}' ended: {error}", exc_info=error)

    async def consume_one(self, message: Message) -> None:
        """Call the handlers with a message, and wait until they return."""
        await self.consume(message)

    def reader(self) -> AnyReceiver:
        """Return the receiver. It must have started."""
        assert self._receiver is not None, "start the subscriber first"
        return self._receiver

    async def get_one(self, *, timeout: float = 5.0) -> StablecastMessage | None:  # noqa: ASYNC109 - its signature
        """Return the next message, None if none comes in `timeout` seconds. The caller acknowledges it.

        Only for a subscriber without handlers.
        """
        assert not self.calls, "a subscriber with handlers gives them all messages"
        message: Message | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                message = await anext(self.reader())
        return await self._parsed(message)

    async def __aiter__(self) -> AsyncIterator[StablecastMessage]:
        """Yield the messages. The caller acknowledges each. Only for a subscriber without handlers."""
        assert not self.calls, "a subscriber with handlers gives them all messages"
        async for message in self.reader():
            parsed = await self._parsed(message)
            assert parsed is not None
            yield parsed

    async def _parsed(self, message: Message | None) -> StablecastMessage | None:
        parser, decoder = self._get_parser_and_decoder()
        context = self._outer_config.context
        parsed: Any = await process_msg(
            msg=message,
            middlewares=(middleware(message, context=context) for middleware in self._broker_middlewares),
            parser=parser,
            decoder=decoder,
        )
        return parsed if parsed is None else _checked(parsed)

    def _make_response_publisher(self, message: "StreamMessage[Any]") -> "Sequence[PublisherProto]":
        return (ReplyPublisher(self._outer_config.producer, message.reply_to),)

    def get_log_context(self, message: "StreamMessage[Any] | None") -> dict[str, str]:
        return {"topic": self.topic, "message_id": getattr(message, "message_id", "")}


class ConcurrentSubscriber(ConcurrentMixin[Message], BrokerSubscriber):
    """A subscriber that handles several messages at a time, in any order."""

    async def start(self) -> None:
        """Start as `BrokerSubscriber`, with the tasks that handle messages."""
        if self._receiver is None:
            await super().start()
            self.start_consume_task()

    async def consume_one(self, message: Message) -> None:
        """Give the message to the next handler that is free."""
        await self._put_msg(message)


class BatchSubscriber(BrokerSubscriber):
    """A subscriber whose handlers get several messages at a time."""

    async def _handle_all(self) -> None:
        waiting: asyncio.Queue[Message | None] = asyncio.Queue(self._config.most)
        self.add_task(self._read_ahead, (waiting,), restart_on_failure=False)
        while (batch := await self._batch(waiting)) is not None:
            await self.consume(batch)

    async def _read_ahead(self, waiting: "asyncio.Queue[Message | None]") -> None:
        try:
            async for message in self.reader():
                await waiting.put(message)
        except StablecastError as error:
            self._log(logging.CRITICAL, f"the subscriber of '{self.topic}' ended: {error}", exc_info=error)
        await waiting.put(None)

    async def _batch(self, waiting: "asyncio.Queue[Message | None]") -> list[Message] | None:
        """Return the next batch, None after the last one."""
        batch: list[Message] = []
        first = await waiting.get()
        if first is None:
            return None
        batch.append(first)
        linger = self._config.linger
        with suppress(TimeoutError):
            async with asyncio.timeout(linger or None):
                while len(batch) < self._config.most and (message := await _next(waiting, linger)) is not None:
                    batch.append(message)
        return batch


async def _next(waiting: "asyncio.Queue[Message | None]", linger: float) -> Message | None:
    """Return the next message; None after the last one, or if none waits and there is no time to wait."""
    if not linger and waiting.empty():
        return None
    message = await waiting.get()
    if message is None:
        waiting.put_nowait(None)
    return message


def parser_of(is_batch: bool) -> tuple[StablecastParser, Callable[..., Any], Callable[..., Any]]:
    if is_batch:
        batches = StablecastBatchParser()
        return batches, batches.parse_batch, batches.decode_batch
    parser = StablecastParser()
    return parser, parser.parse_message, parser.decode_message


def _checked(message: Any) -> StablecastMessage:
    assert isinstance(message, StablecastMessage)
    return message
