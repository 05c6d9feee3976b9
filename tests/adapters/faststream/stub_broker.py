"""A stub of a test broker, as other brokers of FastStream have it: it calls the handlers at once, and nothing fails."""

from typing import Any, Final

import attrs
from faststream.message import encode_message

from stablecast.faststream import StablecastBroker
from stablecast.faststream.subscriber import BrokerSubscriber


@attrs.frozen
class StubMessage:
    """A message that nobody sent and nobody keeps."""

    payload: bytes
    properties: dict[str, Any]
    key: str
    attempt: Final[int] = 1

    def ack(self) -> None:
        """Do nothing."""

    def nack(self, delay: float | None = None, error: BaseException | None = None) -> None:
        """Do nothing."""


async def publish(broker: StablecastBroker, body: Any, topic: str) -> None:
    broker._setup_logger()
    payload, content_type = encode_message(body, serializer=None)
    for subscriber in broker.subscribers:
        assert isinstance(subscriber, BrokerSubscriber)
        subscriber._build_fastdepends_model()
        if subscriber.topic == topic:
            message = StubMessage(payload, {"content-type": content_type or ""}, f"0-{body}")
            await subscriber.process_message(message)
