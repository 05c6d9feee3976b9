"""Captures of our traffic: every layer decoded, from the frame to the message.

`packets` iterates over a capture or a part of it; `survey` finds the protocol of each endpoint. `files` reads the two
formats, `link`, `ip` and `tcp` lead to datagrams and streams, `streams` and `layers` to messages. `command` is the
`stablecast capture` of the command line.
"""

from stablecast.evidence.capture.counts import CaptureTally, count
from stablecast.evidence.capture.decoder import CapturePacket, packets
from stablecast.evidence.capture.errors import CaptureError
from stablecast.evidence.capture.files import FrameMark, marks
from stablecast.evidence.capture.layers import Layer
from stablecast.evidence.capture.ports import PortPlan, TrafficKind
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.evidence.capture.verdicts import FrameVerdict

__all__ = [
    "CaptureError",
    "CapturePacket",
    "CaptureTally",
    "FrameMark",
    "FrameVerdict",
    "Layer",
    "PortPlan",
    "TrafficKind",
    "count",
    "marks",
    "packets",
    "survey",
]
