"""The broker of FastStream for this client, and its sending side."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from fast_depends import dependency_provider
from faststream._internal.broker import BrokerUsecase
from faststream._internal.constants import EMPTY
from faststream._internal.context.repository import ContextRepo
from faststream._internal.di import FastDependsConfig
from faststream._internal.endpoint.utils import ParserComposition
from faststream._internal.logger import DefaultLoggerStorage, make_logger_state
from faststream._internal.logger.logging import get_broker_logger
from faststream._internal.parser import DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.message import gen_cor_id
from faststream.middlewares import AckPolicy
from faststream.response import PublishType
from faststream.specification.schema import BrokerSpec

from stablecast.client import Context, Message, Sent
from stablecast.faststream.connection import BrokerConnection, StablecastBrokerConfig
from stablecast.faststream.message import CONTENT_PROPERTY, StablecastParser
from stablecast.faststream.publish_command import StablecastPublishCommand, no_request
from stablecast.faststream.registrator import StablecastRegistrator

if TYPE_CHECKING:
    from fast_depends import Provider
    from fast_depends.dependencies import Dependant
    from fast_depends.library.serializer import SerializerProto
    from faststream._internal.basic_types import LoggerProto, SendableMessage
    from faststream._internal.broker.registrator import Registrator
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import AsyncCallable, BrokerMiddleware, CustomCallable, IdGenerator
    from faststream.security import BaseSecurity
    from faststream.specification.schema.extra import Tag, TagDict


class StablecastProducer(ProducerProto[StablecastPublishCommand]):
    """Send messages by the sources of a connection."""

    def __init__(
        self, connection: BrokerConnection, parser: "CustomCallable | None", decoder: "CustomCallable | None"
    ) -> None:
        default = StablecastParser()
        self._parser: AsyncCallable = ParserComposition(parser, default.parse_message)
        self._decoder: AsyncCallable = ParserComposition(decoder, default.decode_message)
        self.codec: CodecProto = DefaultCodec()
        self.serializer: SerializerProto | None = None
        self._connection = connection

    async def publish(self, cmd: StablecastPublishCommand) -> Sent:
        """Send one message; wait until it is stable if the command asks for it. Raises like `Source.send`."""
        return (await self._send(cmd, (cmd.body,)))[0]

    async def publish_batch(self, cmd: StablecastPublishCommand) -> list[Sent]:
        """Send messages in order; wait until all are stable if the command asks for it. Raises like `Source.send`."""
        return await self._send(cmd, cmd.batch_bodies)

    async def request(self, cmd: StablecastPublishCommand) -> NoReturn:
        """Raise FeatureNotSupportedException, because no reply is waited for."""
        no_request()

    async def _send(self, cmd: StablecastPublishCommand, bodies: tuple[Any, ...]) -> list[Sent]:
        now = asyncio.get_running_loop().time
        until = None if cmd.timeout is None else now() + cmd.timeout

        def left() -> float | None:
            return None if until is None else max(0.0, until - now())

        source = await self._connection.source(cmd.destination)
        sent = []
        for body in bodies:
            payload, content_type = await self.codec.encode(body, self.serializer)
            headers = {CONTENT_PROPERTY: content_type or "", **cmd.headers_to_publish()}
            sent.append(await source.send(payload, headers, timeout=left(), id=cmd.message_id))
        if cmd.stable and source.config.stores:
            for one in sent:
                await one.stable(left())
        return sent


GRACE_SECONDS = 15.0
"""Seconds in which handlers may finish when the broker stops."""

ID_WIDTH = 10
"""Characters of a message's key in a line of the log."""


class BrokerLog(DefaultLoggerStorage):
    """The logger of a broker, whose lines name the topic."""

    def __init__(self) -> None:
        super().__init__()
        self._width = 4
        self.logger_log_level = logging.INFO

    def set_level(self, level: int) -> None:
        """Leave out messages below this level."""
        self.logger_log_level = level

    def register_subscriber(self, params: dict[str, Any]) -> None:
        """Make room for the topic of a subscriber."""
        self._width = max(self._width, len(params.get("topic", "")))

    def get_logger(self, *, context: ContextRepo) -> "LoggerProto":
        """Return the logger for the lines of handlers, and make it at first."""
        known = self._get_logger_ref()
        if known is None:
            form = f"%(asctime)s %(levelname)-8s - %(topic)-{self._width}s | %(message_id)-{ID_WIDTH}s - %(message)s"
            known = get_broker_logger(
                name="stablecast",
                default_context={"topic": ""},
                message_id_ln=ID_WIDTH,
                fmt=form,
                context=context,
                log_level=self.logger_log_level,
            )
            self._logger_ref.add(known)
        return known


logger_state = partial(make_logger_state, default_storage_cls=BrokerLog)


class StablecastBroker(StablecastRegistrator, BrokerUsecase[Message, Context, StablecastBrokerConfig]):
    """A broker: one context, its subscribers and its publishers."""

    def __init__(  # noqa: PLR0913 - each is a choice of its own
        self,
        resolver: Sequence[str] = (),
        *,
        stores: Sequence[str] = (),
        session_id: int = 0,
        options: dict[str, Any] | None = None,
        context_arguments: dict[str, Any] | None = None,
        ack_policy: AckPolicy = EMPTY,
        graceful_timeout: float | None = GRACE_SECONDS,
        decoder: "CustomCallable | None" = None,
        parser: "CustomCallable | None" = None,
        codec: "CodecProto | None" = None,
        dependencies: Sequence["Dependant"] = (),
        middlewares: Sequence["BrokerMiddleware[Any, Any]"] = (),
        routers: "Iterable[Registrator[Message]]" = (),
        id_generator: "IdGenerator" = gen_cor_id,
        specification_url: str | Iterable[str] | None = None,
        protocol: str | None = "stablecast",
        protocol_version: str | None = None,
        description: str | None = None,
        tags: "Iterable[Tag | TagDict]" = (),
        security: "BaseSecurity | None" = None,
        logger: "LoggerProto | None" = EMPTY,
        log_level: int = logging.INFO,
        apply_types: bool = True,
        serializer: "SerializerProto | None" = EMPTY,
        provider: "Provider | None" = None,
        context: ContextRepo | None = None,
    ) -> None:
        """Configure a broker; `connect` opens its context, and `start` begins to handle messages.

        Args:
            resolver: Addresses `ip:port` of lbmrd relays.
            stores: The stores of its sources and receivers. Without stores messages are only streamed.
            session_id: Names the program in all of its lives. Without it, a receiver starts anew after a crash.
            options: Documented options of its sources by name.
            context_arguments: More arguments of `stablecast.client.Context`, for example `trace` or `profile`.
            ack_policy: When messages are acknowledged; `NACK_ON_ERROR` by default.
            graceful_timeout: Seconds in which handlers may finish when the broker stops; None waits for ever.
            decoder: Makes objects from messages.
            parser: Makes messages of FastStream from those of the client.
            codec: Makes objects from messages, and payloads from objects.
            dependencies: Dependencies of all handlers.
            middlewares: Middlewares of all handlers and publishers.
            routers: Routers to include.
            id_generator: Makes correlation ids.
            specification_url: The address in AsyncAPI; None takes the relays.
            protocol: The protocol in AsyncAPI.
            protocol_version: Its version in AsyncAPI.
            description: The description in AsyncAPI.
            tags: Tags in AsyncAPI.
            security: The security in AsyncAPI.
            logger: The logger; None logs nothing.
            log_level: Its level.
            apply_types: Convert the arguments of handlers to their annotations.
            serializer: Makes payloads from objects.
            provider: Provides dependencies.
            context: The repository of FastStream's context.
        """
        arguments = {"resolver": resolver, "session_id": session_id, **(context_arguments or {})}
        connection = BrokerConnection(arguments, stores, options or {})
        described = [specification_url] if isinstance(specification_url, str) else [*(specification_url or resolver)]
        super().__init__(
            config=StablecastBrokerConfig(
                connection=connection,
                producer=StablecastProducer(connection, parser, decoder),
                broker_decoder=decoder,
                broker_parser=parser,
                broker_codec=codec,
                broker_dependencies=dependencies,
                broker_middlewares=middlewares,
                ack_policy=ack_policy,
                graceful_timeout=graceful_timeout,
                id_generator=id_generator,
                logger=logger_state(logger=logger, log_level=log_level),
                fd_config=_injection(apply_types, serializer, provider, context),
                extra_context={"broker": self},
            ),
            specification=BrokerSpec(
                description=description,
                url=described or ["stablecast"],
                protocol=protocol,
                protocol_version=protocol_version,
                security=security,
                tags=tags,
            ),
            routers=routers,
        )

    @property
    def connection(self) -> BrokerConnection:
        """Return the context and the sources of the broker."""
        connection: BrokerConnection = self.config.broker_config.connection
        return connection

    async def _connect(self) -> Context:
        producer: Any = self.config.producer
        producer.serializer = self.config.fd_config._serializer  # noqa: SLF001 - its other brokers do the same
        producer.codec = self.config.broker_codec or DefaultCodec()
        return await self.connection.open()

    async def start(self) -> None:
        """Open the context, and begin to handle messages. Raises like `Context` and `Context.receiver`."""
        await self.connect()
        await super().start()

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Let handlers finish, and close the context. Messages that no handler finished come again."""
        await super().stop(exc_type, exc_val, exc_tb)
        await self.connection.close()
        self._connection = None

    async def publish(
        self,
        message: "SendableMessage" = None,
        topic: str = "",
        *,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        id: str | None = None,  # noqa: A002 - the name that the client has
        stable: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - its errors say what the call waited for
    ) -> Sent:
        """Send a message to a topic.

        Args:
            message: The object.
            topic: The topic.
            headers: Properties of the message.
            correlation_id: An id that replies carry, too; None makes one.
            reply_to: The topic for what the handler returns.
            id: As for `Source.send`: a message with a known id is not sent again.
            stable: Return when a quorum of the stores has synced the message.
            timeout: Seconds to wait for the stores, for room and for stability; None waits for ever.

        Raises:
            NotRegistered, NoRoom, MessageTooLarge, Closed: As `Source.send`.
            NotStableYet: The message was sent, and is not known to be stable in time.
            NotStable: The message cannot become stable any more.
        """
        command = StablecastPublishCommand(
            message,
            topic=topic,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            reply_to=reply_to,
            message_id=id,
            timeout=timeout,
            stable=stable,
            _publish_type=PublishType.PUBLISH,
        )
        sent: Sent = await self._basic_publish(command, producer=self.config.producer)
        return sent

    async def publish_batch(  # type: ignore[override]
        self,
        *messages: "SendableMessage",
        topic: str,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        stable: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - its errors say what the call waited for
    ) -> list[Sent]:
        """Send messages to a topic in order. The other arguments and errors are those of `publish`."""
        command = StablecastPublishCommand(
            *messages,
            topic=topic,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            reply_to=reply_to,
            timeout=timeout,
            stable=stable,
            _publish_type=PublishType.PUBLISH,
        )
        sent: list[Sent] = await self._basic_publish_batch(command, producer=self.config.producer)
        return sent

    async def request(self, message: "SendableMessage", topic: str = "", /, timeout: float = 0) -> NoReturn:  # noqa: ASYNC109
        """Raise FeatureNotSupportedException, because no reply is waited for."""
        no_request()

    async def ping(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - FastStream's signature
        """Return whether the context is open. Sources and receivers report stores that are away."""
        return self._connection is not None


def _injection(
    apply_types: bool, serializer: "SerializerProto | None", provider: "Provider | None", context: ContextRepo | None
) -> FastDependsConfig:
    return FastDependsConfig(
        use_fastdepends=apply_types,
        serializer=serializer,
        provider=provider or dependency_provider,
        context=context or ContextRepo(),
    )
