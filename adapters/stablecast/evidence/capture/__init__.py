"""Captures of our traffic: every layer decoded, from the frame to the message.

`packets` iterates over a capture or a part of it; `survey` finds out who speaks what. `files` reads the two formats,
`link`, `ip` and `tcp` lead to datagrams and streams, `streams` and `layers` to messages, `command` is the
`stablecast capture` of the command line.
"""

from stablecast.evidence.capture.counts import Tally, count
from stablecast.evidence.capture.decoder import Packet, packets
from stablecast.evidence.capture.errors import CaptureError
from stablecast.evidence.capture.files import Mark, marks
from stablecast.evidence.capture.layers import Layer
from stablecast.evidence.capture.ports import Kind, Plan
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.evidence.capture.verdicts import Verdict

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
