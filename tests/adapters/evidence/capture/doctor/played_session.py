"""Captures of our own machines on a simulated network, and of chosen packets."""

import struct
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any

from stablecast.evidence.capture.doctor import CaptureAdvice, Thresholds
from stablecast.evidence.capture.judge import judge
from stablecast.transports.reliable.settings import SourceSettings
from stablecast.transports.wire import lbtrm, lbtru
from tests.support import captures
from tests.support.captures import datagram
from tests.support.pcap import SECOND, Address
from tests.transports.reliable import network as played

MS = played.MS
GROUP: Address = ("224.10.10.10", 14_400)
NAKS: Address = ("10.0.0.1", 14_390)
SENDER: Address = ("10.0.0.1", 50_000)
NAME = "LBTRM:10.0.0.1:14390:cafe0001"
FIRST = f"10.0.1.0:14360 of {NAME}"

Drop = Callable[[str, Any], bool]
"""Return whether the network drops a packet to an address."""

Timed = tuple[int, bytes]
"""A packet and its time in ns."""


def traffic(count: int, drop: Drop | None = None, until_ms: int = 30_000, **more: Any) -> played.Network:
    """Let a source send one message each 10 ms from the first second on, to two receivers."""
    source = more.pop("source", SourceSettings(batch_bytes=1, linger_ns=MS))
    world = played.Network("lbtrm", 2, played.Faults(), 1, source, **more)
    world.drop = drop
    for number in range(count):
        world.send_at((1_000 + 10 * number) * MS, 7)
    world.run(until_ms * MS)
    return world


def packets_of(world: played.Network, skip: Drop | None = None) -> list[Timed]:
    """Return what is captured at the source, without what `skip` names."""
    found = []
    for at, who, packet in world.wire:
        if skip is not None and skip(who, packet):
            continue
        host, _, port = who.partition(":")
        ends = (SENDER, GROUP) if who == "source" else ((host, int(port)), NAKS)
        found.append((at, datagram(*ends, encoded(packet))))
    return found


def encoded(packet: Any) -> bytes:
    return lbtrm.encode(packet) if isinstance(packet, lbtrm.Packet) else lbtru.encode(packet)


def written(path: Path, packets: Iterable[Timed]) -> Path:
    """Write packets as a capture with nanoseconds."""
    octets = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, captures.RAW)]
    for at, packet in sorted(packets, key=lambda one: one[0]):
        seconds, rest = divmod(at, 1_000_000_000)
        octets.append(struct.pack("<IIII", SECOND + seconds, rest, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(octets))
    return path


def advice(path: Path, packets: Iterable[Timed], **thresholds: float) -> dict[tuple[str, str], CaptureAdvice]:
    """Return the findings of a capture, by code and place."""
    found = judge(written(path, packets), thresholds=Thresholds(**thresholds)).advice
    assert len({(one.code, one.whose) for one in found}) == len(found)
    return {(one.code, one.whose): one for one in found}


def first_copies(receivers: Iterable[str], numbers: Container[int]) -> Drop:
    """Drop the first transmission of these numbers on the way to these receivers."""
    chosen = {*receivers}

    def drop(to: str, packet: Any) -> bool:
        if not isinstance(packet, lbtrm.Data) or to not in chosen:
            return False
        return packet.sqn in numbers and not packet.flags & lbtrm.Data.RETRANSMISSION

    return drop
