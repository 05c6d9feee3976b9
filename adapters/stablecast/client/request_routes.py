"""Whom a control message that came to the request port is for."""

from stablecast.core.protocol.messages import (
    Deregistered,
    Keepalive,
    LateJoinInfo,
    Message,
    Refused,
    Registered,
    Role,
    SourceInfo,
)


def audience(message: Message) -> tuple[bool, bool]:
    """Whether it is for a source, and for a receiver; a store's keepalive is for whichever has the RegID."""
    match message:
        case Registered() | Refused() | Deregistered():
            return message.role is Role.SOURCE, message.role is Role.RECEIVER
        case SourceInfo() | LateJoinInfo():
            return False, True
        case Keepalive():
            return True, True
        case _:
            return True, False
