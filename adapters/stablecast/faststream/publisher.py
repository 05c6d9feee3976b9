"""Publishers of a broker of FastStream: each sends to one topic."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from faststream._internal.configs import PublisherSpecificationConfig, PublisherUsecaseConfig
from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.endpoint.publisher.fake import FakePublisher
from faststream.response import PublishCommand, PublishType
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message, Operation, PublisherSpec

from stablecast.client import Sent
from stablecast.faststream.connection import StablecastBrokerConfig
from stablecast.faststream.publish_command import StablecastPublishCommand, no_request

if TYPE_CHECKING:
    from faststream._internal.basic_types import SendableMessage
    from faststream._internal.producer import ProducerProto
    from faststream._internal.types import PublisherMiddleware


@dataclass(kw_only=True)
class BrokerPublisherConfig(PublisherUsecaseConfig):
    _outer_config: StablecastBrokerConfig
    topic: str
    headers: dict[str, Any]
    reply_to: str
    stable: bool


@dataclass(kw_only=True)
class BrokerPublisherSpecificationConfig(PublisherSpecificationConfig):
    topic: str


class BrokerPublisherSpecification(PublisherSpecification[StablecastBrokerConfig, BrokerPublisherSpecificationConfig]):
    @property
    def topic(self) -> str:
        """Return the topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def name(self) -> str:
        """Return the key of its channel."""
        return self.config.title_ or f"{self.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        """Return the channel to which it sends, by its name."""
        payload = resolve_payloads(self.get_payloads(), "Publisher")
        return {
            self.name: PublisherSpec(
                address=self.topic,
                description=self.config.description_,
                operation=Operation(message=Message(title=f"{self.name}:Message", payload=payload), bindings=None),
                bindings=None,
            )
        }


class BrokerPublisher(PublisherUsecase):
    _outer_config: StablecastBrokerConfig

    def __init__(self, config: BrokerPublisherConfig, specification: "PublisherSpecification[Any, Any]") -> None:
        super().__init__(config, specification)
        self._config = config

    @property
    def topic(self) -> str:
        """Return the topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self._config.topic}"

    async def start(self) -> None:
        """Make the source, so that receivers find it before the first message."""
        await self._outer_config.connection.source(self.topic)

    async def publish(
        self,
        message: "SendableMessage",
        /,
        topic: str = "",
        *,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        id: str | None = None,  # noqa: A002 - the name that the client has
        timeout: float | None = None,  # noqa: ASYNC109 - its errors say what the call waited for
    ) -> Sent:
        """Send a message, and wait until it is stable. The arguments are those of `StablecastBroker.publish`."""
        command = StablecastPublishCommand(
            message,
            topic=topic or self.topic,
            headers=self._config.headers | (headers or {}),
            correlation_id=correlation_id or self._outer_config.id_generator(),
            reply_to=reply_to or self._config.reply_to,
            message_id=id,
            timeout=timeout,
            stable=self._config.stable,
            _publish_type=PublishType.PUBLISH,
        )
        sent: Sent = await self._basic_publish(command, producer=self._outer_config.producer, _extra_middlewares=())
        return sent

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: "Iterable[PublisherMiddleware]") -> None:
        command = StablecastPublishCommand.from_cmd(cmd)
        command.destination = self.topic
        command.add_headers(self._config.headers, override=False)
        command.reply_to = command.reply_to or self._config.reply_to
        command.stable = self._config.stable
        await self._basic_publish(command, producer=self._outer_config.producer, _extra_middlewares=_extra_middlewares)

    async def request(self, message: "SendableMessage", /, *, correlation_id: str | None = None) -> NoReturn:
        """Raise FeatureNotSupportedException, because no reply is waited for."""
        no_request()


class ReplyPublisher(FakePublisher):
    """The publisher of the result of a handler whose message names a topic for replies."""

    def __init__(self, producer: "ProducerProto[Any]", topic: str) -> None:
        super().__init__(producer=producer)
        self._topic = topic

    def patch_command(self, cmd: PublishCommand) -> StablecastPublishCommand:
        command = StablecastPublishCommand.from_cmd(super().patch_command(cmd))
        command.destination = self._topic
        return command
