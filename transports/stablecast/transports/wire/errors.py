"""The exception of the codecs."""


class WireError(Exception):
    """The bytes are no packet of the protocol, or a field of a packet does not fit its bytes."""
