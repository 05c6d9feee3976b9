"""One capture as a witness: where it was made, its clock, and the messages that passed it."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import attrs

from stablecast.evidence.capture.files import CaptureFrame, CutError, frames
from stablecast.evidence.capture.ip import parse
from stablecast.evidence.capture.link import ipv4_packet
from stablecast.evidence.incident.tcp_lives import Pulse

LOOKED_AT: Final = 20_000
"""Packets by which the host of a capture is found, at most."""

MOSTLY: Final = 0.97
"""Share of unicast packets that the host of a capture sends or gets, at least."""

FIRST_MULTICAST: Final = 224
BROADCAST: Final = "255.255.255.255"


@attrs.define
class CaptureWitness:
    """A capture. Its times are already those of a wall clock, so `shift` begins with 0.

    Attributes:
        address: The host at which it was made; empty for a place in the network, such as a mirrored port.
        went, came: Times of messages that left the host, or came to it. At a place in the network a message that passes
            came from its sender, and goes on to its receiver.
        pulse: All packets.
    """

    path: Path
    address: str
    shift: int = 0
    wall_known: bool = True
    error: int = 0
    went: dict[str, int] = attrs.field(factory=dict)
    came: dict[str, int] = attrs.field(factory=dict)
    repeated: set[str] = attrs.field(factory=set)
    pulse: Pulse = attrs.field(factory=Pulse)
    packets: int = 0

    @property
    def clock(self) -> str:
        """Return the name of its clock: that of the host, or the file."""
        return self.address or self.path.name

    def wall(self, time: int) -> int:
        return time + self.shift

    def sees_come(self, host: str) -> bool:
        """Return whether a packet for a host is captured as it comes."""
        return self.address in ("", host)


def host_of(path: Path, others: Iterable[str] = ()) -> str:
    """Return the address of the host at which a capture was made; empty if it was made in the network.

    A host sends or gets each unicast packet of its own capture. If two hosts do, the name of the file or directory
    decides, and then that `others` have a capture of their own.

    Raises:
        CaptureError: If the file cannot be read.
    """
    counts: Counter[str] = Counter()
    total = 0
    with suppress(CutError):
        for frame in islice(frames(path), LOOKED_AT):
            ends = _ends(frame)
            if ends is not None:
                total += 1
                counts.update(set(ends))
    found = [address for address, count in counts.items() if count >= MOSTLY * total]
    named = [one for one in found if any(one in part for part in path.parts[-2:])]
    taken = set(others)
    free = [one for one in found if one not in taken]
    for some in (named, found, free):
        if len(some) == 1:
            return some[0]
    return ""


def _ends(frame: CaptureFrame) -> tuple[str, str] | None:
    octets = ipv4_packet(frame.link, frame.octets)
    packet = parse(octets, len(octets)) if octets else None
    if packet is None or packet.target in (BROADCAST, packet.source):
        return None
    if int(packet.target.partition(".")[0]) >= FIRST_MULTICAST or packet.target.startswith("127."):
        return None
    return packet.source, packet.target
