"""W1: each packet of an endpoint is well formed.

A malformed packet breaks the rule only if its sender is ours: by its port alone it may be anything. In a stream with
missing bytes nobody knows where messages begin. So it counts against senders whose other packets were decoded.
"""

from typing import Final

import attrs

from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.ip import FrameVerdict, endpoint_text
from stablecast.evidence.capture.judge.findings import CaptureFindings, RuleStanding
from stablecast.evidence.capture.statements import Ends

MAX_SENDERS: Final = 1 << 16
"""Directions that are remembered, at most."""
MAX_SENTENCES: Final = 16
"""Malformed packets of one direction that are remembered, at most."""
PROOF: Final = 2
"""Decoded packets that prove a sender to be ours."""


@attrs.define
class PacketSender:
    """A direction: its decoded and malformed packets, and the first of those. `torn`: bytes are missing."""

    read: int = 0
    malformed: int = 0
    torn: bool = False
    faults: list[tuple[int, int, str]] = attrs.field(factory=list)


@attrs.define
class FormRule:
    findings: CaptureFindings
    senders: dict[Ends, PacketSender] = attrs.field(factory=dict)

    def judge_packet(self, packet: CapturePacket) -> None:
        if packet.source is None or packet.target is None or not packet.number:
            return
        if packet.verdict is FrameVerdict.DAMAGED:
            text = "a checksum is wrong: the packet was damaged on its way or at the capture, and its receiver drops it"
            self.findings.cannot_tell("W1", endpoint_text(packet.source), packet.number, text)
            return
        sender = self._sender((packet.source, packet.target))
        if packet.lost or any(problem.verdict is FrameVerdict.INCOMPLETE for problem in packet.problems):
            sender.torn = True
        wrong = [problem.text for problem in packet.problems if problem.verdict is FrameVerdict.MALFORMED]
        if wrong:
            self.findings.strange += 1
            sender.malformed += 1
            if not sender.torn and len(sender.faults) < MAX_SENTENCES:
                sender.faults.append((packet.number, packet.time_ns, wrong[0]))
        elif packet.layers:
            self.findings.ours += 1
            sender.read += 1

    def _sender(self, ends: Ends) -> PacketSender:
        if ends not in self.senders and len(self.senders) >= MAX_SENDERS:
            self._close(next(iter(self.senders)))
        return self.senders.setdefault(ends, PacketSender())

    def close(self) -> None:
        """Judge all senders at the end of the capture."""
        while self.senders:
            self._close(next(iter(self.senders)))

    def _close(self, ends: Ends) -> None:
        sender = self.senders.pop(ends)
        ours = sender.read >= max(PROOF, sender.malformed)
        if sender.read:
            for frame, time_ns, text in sender.faults:
                standing = RuleStanding.BROKEN if ours else RuleStanding.CANNOT_TELL
                self.findings.note("W1", standing, endpoint_text(ends[0]), (frame, time_ns), text)
