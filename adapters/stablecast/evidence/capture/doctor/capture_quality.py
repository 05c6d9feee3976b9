"""The quality of a capture: cut packets, copies, packets out of order, and a clock that was set.

Other findings rest on the packets, so a bad capture makes them wrong. These findings come first.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.decoder import SKEW_NS, CapturePacket
from stablecast.evidence.capture.doctor.findings import MAX_FRAMES, CaptureAdvice, milliseconds, percent
from stablecast.evidence.capture.doctor.thresholds import Thresholds
from stablecast.evidence.capture.statements import DATAGRAMS
from stablecast.text import plural

WHOSE: Final = "the capture"

FEW: Final = 20
"""Packets that say nothing yet about a share."""


@attrs.define
class CaptureQuality:
    """Counts of a whole capture. Each list has the first packets of its kind.

    Attributes:
        ours: Packets of the protocol.
        datagrams: Packets that may be copies, `copies` of them.
        back: Packets that are older than the one before, `farthest` ns at most, without those of a set clock.
        jump: The longest step of the clock, ns.
    """

    ours: int = 0
    datagrams: int = 0
    copies: int = 0
    truncated: int = 0
    back: int = 0
    farthest: int = 0
    steps: int = 0
    jump: int = 0
    truncated_frames: list[int] = attrs.field(factory=list)
    copy_frames: list[int] = attrs.field(factory=list)
    back_frames: list[int] = attrs.field(factory=list)
    step_frames: list[int] = attrs.field(factory=list)
    _last_ns: int = 0

    def add_packet(self, packet: CapturePacket) -> None:
        """Count the next packet, also one of others."""
        behind = self._last_ns - packet.time_ns
        self._last_ns = packet.time_ns
        if behind > SKEW_NS:
            self.steps += 1
            self.jump = max(self.jump, behind)
            _note(self.step_frames, packet.number)
        if packet.kind is None:
            return
        self.ours += 1
        if packet.kind not in DATAGRAMS:
            self.add_datagram(packet.number, copied=packet.copied)
        if 0 < behind <= SKEW_NS:
            self.back += 1
            self.farthest = max(self.farthest, behind)
            _note(self.back_frames, packet.number)
        if packet.cut:
            self.truncated += 1
            _note(self.truncated_frames, packet.number)

    def add_datagram(self, frame: int, *, copied: bool) -> None:
        self.datagrams += 1
        if copied:
            self.copies += 1
            _note(self.copy_frames, frame)

    def findings(self, thresholds: Thresholds) -> Iterator[CaptureAdvice]:
        """Yield what makes the other findings doubtful."""
        if self._exceeds(self.truncated, self.ours, thresholds.truncated):
            yield CaptureAdvice(
                "truncated",
                WHOSE,
                f"{self.truncated:,} of {plural(self.ours, 'packet')} were cut by the snap length, so their ends are "
                "not known",
                "Capture with `-s 0`. Figures of this capture are too low.",
                self.truncated / self.ours,
                thresholds.truncated,
                tuple(self.truncated_frames),
                {"packets": self.truncated},
            )
        if self._exceeds(self.copies, self.datagrams, thresholds.copies):
            share = self.copies / self.datagrams
            yield CaptureAdvice(
                "copies",
                WHOSE,
                f"{self.copies:,} of {plural(self.datagrams, 'packet')} ({percent(share)}) are copies that were "
                "captured twice. They are counted once",
                "Capture at one interface, or mirror one direction of a port only. If copies come from the network "
                "itself, look for a loop.",
                share,
                thresholds.copies,
                tuple(self.copy_frames),
                {"copies": self.copies},
            )
        yield from self._times(thresholds)

    def _times(self, thresholds: Thresholds) -> Iterator[CaptureAdvice]:
        if self._exceeds(self.back, self.ours, thresholds.disorder):
            yield CaptureAdvice(
                "disorder",
                WHOSE,
                f"{self.back:,} of {plural(self.ours, 'packet')} are older than the packet before, by up to "
                f"{milliseconds(self.farthest):,} ms",
                "Put them in order with `reordercap`. Several capture interfaces or queues of a network card cause it.",
                self.back / self.ours,
                thresholds.disorder,
                tuple(self.back_frames),
                {"milliseconds": milliseconds(self.farthest)},
            )
        if self.steps and self.steps >= thresholds.clock:
            yield CaptureAdvice(
                "clock",
                WHOSE,
                f"the clock went back {plural(self.steps, 'time')}, by up to {self.jump / SECOND:,.1f} s. Packets "
                "before and after are examined apart",
                "If several captures were joined, examine each by itself or use `mergecap`. Else let the time service "
                "slew the clock instead of setting it.",
                self.steps,
                thresholds.clock,
                tuple(self.step_frames),
                {"seconds": round(self.jump / SECOND, 3)},
            )

    @staticmethod
    def _exceeds(count: int, total: int, threshold: float) -> bool:
        return count > 0 and total >= FEW and count >= threshold * total


def _note(frames: list[int], frame: int) -> None:
    if frame and len(frames) < MAX_FRAMES:
        frames.append(frame)
