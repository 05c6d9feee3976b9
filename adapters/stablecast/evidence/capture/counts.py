"""Counts of what a capture holds."""

from collections import Counter
from collections.abc import Iterable

import attrs

from stablecast.evidence.capture.decoder import Packet
from stablecast.evidence.capture.verdicts import Verdict


@attrs.define
class Tally:
    """What was found so far.

    Attributes:
        frames: Frames by their verdict.
        types: Layers by protocol and kind, and what they carry by its name.
    """

    frames: Counter[Verdict] = attrs.field(factory=Counter)
    types: Counter[str] = attrs.field(factory=Counter)

    def add(self, packet: Packet) -> None:
        """Counts a packet."""
        if packet.number:
            self.frames[packet.verdict] += 1
        for _, verdict in packet.settles:
            self.frames[Verdict.PART] -= 1
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
        return self.frames[Verdict.DECODED] > 0 and not self.faulty

    @property
    def faulty(self) -> bool:
        """Whether something that is ours was not decoded."""
        return any(self.frames[verdict] for verdict in FAULTS)

    def as_json(self) -> dict[str, object]:
        """The counts for machines."""
        counts = {verdict.value: self.frames[verdict] for verdict in Verdict if verdict is not Verdict.PART}
        return {"packets": self.packets, **counts, "types": dict(sorted(self.types.items()))}


FAULTS = (Verdict.DIFFERENT, Verdict.UNKNOWN, Verdict.INCOMPLETE, Verdict.DAMAGED, Verdict.MALFORMED)
"""The verdicts on what is ours and could not be decoded to the end."""


def count(packets: Iterable[Packet]) -> Tally:
    """The tally of some packets."""
    tally = Tally()
    for packet in packets:
        tally.add(packet)
    return tally
