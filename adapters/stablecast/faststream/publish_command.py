"""Commands to send, which middlewares of FastStream see and may change."""

from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from faststream.exceptions import FeatureNotSupportedException
from faststream.response import BatchPublishCommand, PublishCommand, PublishType, Response

if TYPE_CHECKING:
    from faststream._internal.basic_types import SendableMessage


def no_request() -> NoReturn:
    """Raise FeatureNotSupportedException, because no reply is waited for."""
    raise FeatureNotSupportedException(
        "Stablecast has no requests that wait for a reply: give publish a reply_to, and subscribe to that topic"
    )


class StablecastResponse(Response):
    """The result of a handler, with headers and an id for its message."""

    def __init__(
        self,
        body: "SendableMessage",
        *,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        id: str | None = None,  # noqa: A002 - the name that the client has
    ) -> None:
        """Return `body` from a handler; `id` is as for `Source.send`."""
        super().__init__(body, headers=headers, correlation_id=correlation_id)
        self.id: Final = id

    def as_publish_command(self) -> "StablecastPublishCommand":
        return StablecastPublishCommand(
            self.body,
            headers=self.headers,
            correlation_id=self.correlation_id,
            message_id=self.id,
            _publish_type=PublishType.PUBLISH,
        )


class StablecastPublishCommand(BatchPublishCommand):
    """One or more messages to send to the topic `destination`.

    Attributes:
        message_id: The id of the message, as `id` of `Source.send`.
        timeout: Seconds to wait in all: for the stores, for room and for stability; None waits for ever.
        stable: Wait until the messages are stable.
    """

    def __init__(
        self,
        message: Any,
        /,
        *messages: Any,
        topic: str = "",
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        message_id: str | None = None,
        timeout: float | None = None,
        stable: bool = True,
        _publish_type: PublishType,
    ) -> None:
        super().__init__(
            message,
            *messages,
            destination=topic,
            headers=headers,
            correlation_id=correlation_id,
            reply_to=reply_to,
            _publish_type=_publish_type,
        )
        self.message_id = message_id
        self.timeout = timeout
        self.stable = stable

    def headers_to_publish(self) -> dict[str, Any]:
        own: dict[str, Any] = {}
        if self.correlation_id:
            own["correlation_id"] = self.correlation_id
        if self.reply_to:
            own["reply_to"] = self.reply_to
        return own | self.headers

    @classmethod
    def from_cmd(cls, cmd: PublishCommand, *, batch: bool = False) -> Self:
        """Return a command of this class; `batch` sends each item of the body as a message."""
        if isinstance(cmd, cls):
            return cmd
        body, extra = cmd.body, ()
        if batch and isinstance(body, list | tuple):
            body, extra = (body[0], tuple(body[1:])) if body else (None, ())
        return cls(
            body,
            *extra,
            topic=cmd.destination,
            headers=cmd.headers,
            correlation_id=cmd.correlation_id,
            reply_to=cmd.reply_to,
            _publish_type=cmd.publish_type,
        )
