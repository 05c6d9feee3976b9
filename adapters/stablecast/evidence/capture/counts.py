"""Counts of what a capture holds."""

from collections import Counter
from collections.abc import Iterable

import attrs

from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.verdicts import FrameVerdict


@attrs.define
class CaptureTally:
    """What was found so far.

    Attributes:
        frames: Frames by their verdict.
        types: Layers by protocol and kind, and what they carry by its name.
    """

    frames: Counter[FrameVerdict] = attrs.field(factory=Counter)
    types: Counter[str] = attrs.field(factory=Counter)

    def add(self, packet: CapturePacket) -> None:
        """Counts a packet."""
        if packet.number:
            self.frames[packet.verdict] += 1
        for _, verdict in packet.settles:
            self.frames[FrameVerdict.PART] -= 1
            self.frames[verdict] += 1
        for layer in packet.layers:
            self.types[layer.type] += 1
            self.types.update(layer.parts)

    @property
    def packets(self) -> int:
        """All frames of the capture."""
        return self.frames.total()

    @property
    def clean(self) -> bool:
        """Whether something is ours and all of that was decoded."""
        return self.frames[FrameVerdict.DECODED] > 0 and not self.faulty

    @property
    def faulty(self) -> bool:
        """Whether something that is ours was not decoded."""
        return any(self.frames[verdict] for verdict in FAULTS)

    def as_json(self) -> dict[str, object]:
        """The counts for machines."""
        counts = {verdict.value: self.frames[verdict] for verdict in FrameVerdict if verdict is not FrameVerdict.PART}
        return {"packets": self.packets, **counts, "types": dict(sorted(self.types.items()))}


FAULTS = (
    FrameVerdict.DIFFERENT,
    FrameVerdict.UNKNOWN,
    FrameVerdict.INCOMPLETE,
    FrameVerdict.DAMAGED,
    FrameVerdict.MALFORMED,
)
"""The verdicts on what is ours and could not be decoded to the end."""


def count(packets: Iterable[CapturePacket]) -> CaptureTally:
    """The tally of some packets."""
    tally = CaptureTally()
    for packet in packets:
        tally.add(packet)
    return tally
