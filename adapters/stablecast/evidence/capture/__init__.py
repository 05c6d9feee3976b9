"""Captures of our traffic: every layer decoded, from the frame to the message.

`packets` iterates over a capture or a part of it; `survey` finds the protocol of each endpoint. `files` reads the two
formats, `link`, `ip` and `tcp` lead to datagrams and streams, `streams` and `layers` to messages. `command` is the
`stablecast capture` of the command line.
"""

from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.files import marks
from stablecast.evidence.capture.traffic_survey import survey

__all__ = ["marks", "packets", "survey"]
