"""What is wrong with a capture file, as one sentence."""

from stablecast.core.errors import StablecastError


class CaptureError(StablecastError):
    """The file is no capture, or ends before its end."""


class CutError(CaptureError):
    """The file ends before its end; all whole frames were read."""
