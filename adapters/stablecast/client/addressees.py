"""The roles that control messages are for: those of sources, of receivers, or of either."""

from stablecast.core.protocol import messages


def addressee(message: messages.Message) -> messages.Role | None:
    """Return whether a message to the request port is for a source or a receiver; None means either.

    A store's keepalive has only a RegID, which both may have.
    """
    match message:
        case messages.Registered() | messages.Refused() | messages.Deregistered():
            return message.role
        case messages.SourceInfo() | messages.LateJoinInfo():
            return messages.Role.RECEIVER
        case messages.Keepalive():
            return None
        case _:
            return messages.Role.SOURCE
