"""Errors of reading a capture file."""

from stablecast.core.errors import StablecastError


class CaptureError(StablecastError):
    """The file is no capture, or is damaged."""


class CutError(CaptureError):
    """The file is cut off; all whole frames were read."""
