"""Counts of the frames and layers of a capture."""

from collections import Counter

import attrs

from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.verdicts import FrameVerdict


@attrs.define
class CaptureTally:
    """Counts so far.

    Attributes:
        frames: Frames by their verdict.
        types: Layers by protocol and kind, and their parts by name.
    """

    frames: Counter[FrameVerdict] = attrs.field(factory=Counter)
    types: Counter[str] = attrs.field(factory=Counter)

    def add(self, packet: CapturePacket) -> None:
        """Count a packet and the frames that it settles."""
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
        """Return the number of frames of the capture."""
        return self.frames.total()

    @property
    def clean(self) -> bool:
        """Return whether something is ours and all of it was decoded."""
        return self.frames[FrameVerdict.DECODED] > 0 and not self.faulty

    @property
    def faulty(self) -> bool:
        """Return whether something that is ours was not decoded."""
        return any(self.frames[verdict] for verdict in FAULTS)

    def as_json(self) -> dict[str, object]:
        """Return the counts for machines."""
        counts = {verdict.value: self.frames[verdict] for verdict in FrameVerdict if verdict is not FrameVerdict.PART}
        return {"packets": self.packets, **counts, "types": dict(sorted(self.types.items()))}


FAULTS = (
    FrameVerdict.DIFFERENT,
    FrameVerdict.UNKNOWN,
    FrameVerdict.INCOMPLETE,
    FrameVerdict.DAMAGED,
    FrameVerdict.MALFORMED,
)
"""Verdicts on frames of ours that were not decoded to the end."""
