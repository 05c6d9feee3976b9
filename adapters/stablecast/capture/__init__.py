"""Captures of our traffic: every layer decoded, from the frame to the message.

`packets` iterates over a capture or a part of it; `survey` finds out who speaks what. `files` reads the two formats,
`link`, `ip` and `tcp` lead to datagrams and streams, `streams` and `layers` to messages, `command` is the
`stablecast capture` of the command line.
"""

from stablecast.capture.decoding import Packet, packets
from stablecast.capture.errors import CaptureError
from stablecast.capture.files import Mark, marks
from stablecast.capture.layers import Layer
from stablecast.capture.ports import Kind, Plan
from stablecast.capture.surveying import survey
from stablecast.capture.tally import Tally, count
from stablecast.capture.verdicts import Verdict

__all__ = [
    "CaptureError",
    "Kind",
    "Layer",
    "Mark",
    "Packet",
    "Plan",
    "Tally",
    "Verdict",
    "count",
    "marks",
    "packets",
    "survey",
]
