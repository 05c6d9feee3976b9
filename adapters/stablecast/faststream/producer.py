"""The sending side of a broker of FastStream."""

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

from faststream._internal.endpoint.utils import ParserComposition
from faststream._internal.parser import DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.exceptions import FeatureNotSupportedException

from stablecast.client import Sent
from stablecast.faststream.connection import BrokerConnection
from stablecast.faststream.message import CONTENT_PROPERTY, StablecastParser
from stablecast.faststream.publish_command import StablecastPublishCommand

if TYPE_CHECKING:
    from fast_depends.library.serializer import SerializerProto
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import AsyncCallable, CustomCallable


class StablecastProducer(ProducerProto[StablecastPublishCommand]):
    """Send messages by the sources of a connection."""

    def __init__(
        self, connection: BrokerConnection, parser: "CustomCallable | None", decoder: "CustomCallable | None"
    ) -> None:
        """Send by `connection`; parser and decoder are those of the broker."""
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
        raise FeatureNotSupportedException(
            "Stablecast has no requests that wait for a reply: give publish a reply_to, and subscribe to that topic"
        )

    async def _send(self, cmd: StablecastPublishCommand, bodies: tuple[Any, ...]) -> list[Sent]:
        now = asyncio.get_running_loop().time
        until = None if cmd.timeout is None else now() + cmd.timeout
        source = await self._connection.source(cmd.destination)
        sent = []
        for body in bodies:
            payload, content_type = await self.codec.encode(body, self.serializer)
            headers = {CONTENT_PROPERTY: content_type or "", **cmd.headers_to_publish()}
            sent.append(await source.send(payload, headers, timeout=cmd.timeout, id=cmd.message_id))
        if cmd.stable and source.config.stores:
            for one in sent:
                await one.stable(None if until is None else max(0.0, until - now()))
        return sent
