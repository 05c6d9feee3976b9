"""The declarations of subscribers and publishers, for brokers and routers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from faststream._internal.broker.registrator import Registrator
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream.exceptions import SetupError
from faststream.middlewares import AckPolicy

from stablecast.client import Message
from stablecast.faststream.connection import StablecastBrokerConfig
from stablecast.faststream.publisher import (
    BrokerPublisher,
    BrokerPublisherConfig,
    BrokerPublisherSpecification,
    BrokerPublisherSpecificationConfig,
)
from stablecast.faststream.subscriber import (
    BatchSubscriber,
    BrokerSubscriber,
    BrokerSubscriberConfig,
    BrokerSubscriberSpecification,
    BrokerSubscriberSpecificationConfig,
    ConcurrentSubscriber,
    parser_of,
)

if TYPE_CHECKING:
    from fast_depends.dependencies import Dependant
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import CustomCallable

BATCH_MESSAGES = 100
"""Messages of a batch at most, by default."""


class StablecastRegistrator(Registrator[Message, StablecastBrokerConfig]):
    """Declare subscribers and publishers."""

    def subscriber(  # type: ignore[override]  # noqa: PLR0913 - each is a choice of its own
        self,
        topic: str = "",
        *,
        pattern: str | None = None,
        ack_policy: AckPolicy = EMPTY,
        delay: float = 1.0,
        attempts: int | None = None,
        dead_letters: str = "",
        batch: bool = False,
        max_records: int = BATCH_MESSAGES,
        batch_timeout: float = 0.0,
        max_workers: int = 1,
        no_reply: bool = False,
        dependencies: Sequence["Dependant"] = (),
        parser: "CustomCallable | None" = None,
        decoder: "CustomCallable | None" = None,
        codec: "CodecProto | None" = None,
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
        persistent: bool = True,
        **arguments: Any,
    ) -> BrokerSubscriber:
        """Subscribe to a topic; decorate a handler with the result.

        Args:
            topic: The topic.
            pattern: A pattern of PCRE for the topics instead.
            ack_policy: When a message is acknowledged; `NACK_ON_ERROR` unless the broker has another default.
            delay: Seconds before a message comes again that was not acknowledged.
            attempts: Deliveries in all; None has no limit.
            dead_letters: The topic for messages after the last attempt, and for rejected ones.
            batch: Handlers get a list of messages.
            max_records: Messages of a batch at most.
            batch_timeout: Seconds to wait for more messages of a batch after its first one.
            max_workers: Messages that are handled at a time, in any order.
            no_reply: Do not send the results of handlers to the topic that the message names in `reply_to`.
            dependencies: Dependencies of all handlers.
            parser: Makes messages of FastStream from those of the client.
            decoder: Makes objects from messages.
            codec: Makes objects from messages, too.
            title: The title in AsyncAPI.
            description: The description in AsyncAPI; None takes the docstring of the handler.
            include_in_schema: Show the subscriber in AsyncAPI.
            persistent: Keep the subscriber alive as long as the broker.
            arguments: More arguments of `Context.receiver`, for example `start="latest"` or `group="billing"`.

        Raises:
            SetupError: Two choices exclude each other.
        """
        if bool(topic) == (pattern is not None):
            raise SetupError("a subscriber has either a topic or a pattern")
        _check(batch and max_workers > 1, "batches are handled one after the other: leave out max_workers")
        _check(attempts is not None and not dead_letters, "attempts need dead_letters, the topic for what fails always")
        known, parse, decode = parser_of(batch)
        outer = cast("StablecastBrokerConfig", self.config)
        config = BrokerSubscriberConfig(
            _outer_config=outer,
            topic=topic or str(pattern),
            is_pattern=pattern is not None,
            delay=delay,
            attempts=attempts,
            dead_letters=dead_letters,
            most=max_records,
            linger=batch_timeout,
            arguments=arguments,
            source=known,
            no_reply=no_reply,
            _ack_policy=ack_policy,
        )
        config.parser, config.decoder = parse, decode
        calls: CallsCollection[Any] = CallsCollection()
        described = BrokerSubscriberSpecificationConfig(
            topic=config.topic, title_=title, description_=description, include_in_schema=include_in_schema
        )
        specification = BrokerSubscriberSpecification(outer, described, calls)
        made: BrokerSubscriber
        if batch:
            made = BatchSubscriber(config, specification, calls)
        elif max_workers > 1:
            made = ConcurrentSubscriber(config, specification, calls, max_workers=max_workers)
        else:
            made = BrokerSubscriber(config, specification, calls)
        super().subscriber(made, persistent=persistent)
        return made.add_call(parser_=parser, decoder_=decoder, dependencies_=dependencies, codec_=codec)

    def publisher(  # type: ignore[override]  # noqa: PLR0913 - each is a choice of its own
        self,
        topic: str,
        *,
        headers: dict[str, Any] | None = None,
        reply_to: str = "",
        stable: bool = True,
        title: str | None = None,
        description: str | None = None,
        schema: Any | None = None,
        include_in_schema: bool = True,
        persistent: bool = True,
    ) -> BrokerPublisher:
        """Publish to a topic: call `publish` of the result, or decorate a handler to send what it returns.

        Args:
            topic: The topic.
            headers: Headers of each message.
            reply_to: The topic for replies.
            stable: Wait until each message is stable. A handler's message is acknowledged after that.
            title: The title in AsyncAPI.
            description: The description in AsyncAPI.
            schema: The type of the messages in AsyncAPI; None takes what the handler returns.
            include_in_schema: Show the publisher in AsyncAPI.
            persistent: Keep the publisher alive as long as the broker.
        """
        outer = cast("StablecastBrokerConfig", self.config)
        config = BrokerPublisherConfig(
            _outer_config=outer, topic=topic, headers=headers or {}, reply_to=reply_to, stable=stable
        )
        described = BrokerPublisherSpecificationConfig(
            topic=topic,
            schema_=schema,
            title_=title,
            description_=description,
            include_in_schema=include_in_schema,
        )
        made = BrokerPublisher(config, BrokerPublisherSpecification(outer, described))
        super().publisher(made, persistent=persistent)
        return made

    def include_router(self, router: Registrator[Message, Any], **arguments: Any) -> None:
        """Add the subscribers and publishers of a router. Raises SetupError for that of another broker."""
        if not isinstance(router, StablecastRegistrator):
            raise SetupError(f"the router must be a StablecastRouter, not {type(router).__name__}")
        super().include_router(router, **arguments)


def _check(is_wrong: bool, text: str) -> None:
    if is_wrong:
        raise SetupError(text)
