"""The one exception of the codecs."""


class WireError(Exception):
    """Bytes that are no packet of the protocol, or a packet that has no bytes (a field out of its range)."""
