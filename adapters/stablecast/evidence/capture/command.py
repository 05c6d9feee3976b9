"""`stablecast capture decode FILE`: output and exit status."""

import sys
from pathlib import Path

from stablecast.evidence.capture import packet_text
from stablecast.evidence.capture.decoder import CapturePacket, CaptureTally, packets
from stablecast.evidence.capture.files import CaptureError, CutError
from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.text.console import say
from stablecast.text.exit_status import failed

CLEAN, FAULTY, UNREADABLE = 0, 1, 2
"""Exit statuses: all of ours was decoded; something was not, or nothing is ours; the file cannot be read."""
MAX_PROBLEMS = 100
"""Sentences about packets in the JSON form, at most."""


def run_decode(path: Path, told: list[str], roundtrip: bool, as_json: bool, records: bool = False) -> int:
    """Decode a capture, print its packets and counts, and return the exit status.

    Args:
        path: The capture.
        told: What the caller knows of its ports.
        roundtrip: Whether to encode everything again.
        as_json: Whether to print JSON: one object, the counts.
        records: Whether to print one for each packet of ours before it.
    """
    try:
        plan = survey(path, told)
        return _report(path, plan, roundtrip, as_json or records, records)
    except CaptureError as error:
        return failed(error, UNREADABLE)


def _report(path: Path, plan: PortPlan, roundtrip: bool, as_json: bool, records: bool) -> int:
    tally, problems = CaptureTally(), list[str]()
    first_ns: int | None = None
    cut = ""
    try:
        for packet in packets(path, plan, roundtrip=roundtrip):
            tally.add(packet)
            first_ns = packet.time_ns if first_ns is None else first_ns
            if as_json and len(problems) < MAX_PROBLEMS:
                problems += [f"{_where(packet)}: {problem.text}" for problem in packet.problems]
            if packet.verdict is FrameVerdict.OTHER:
                continue
            if records:
                say(packet_text.record(packet))
            elif not as_json:
                _print(packet_text.line(packet, plan, first_ns))
    except CutError as error:
        cut = str(error)
    if as_json:
        say({"file": str(path), **tally.as_json(), "problems": problems[:MAX_PROBLEMS]})
    else:
        for text in packet_text.summary(tally):
            _print(text)
    if cut:
        return failed(cut, UNREADABLE)
    if not tally.frames[FrameVerdict.DECODED] and not tally.faulty:
        return failed(f"nothing in {path} is ours, by its ports and its bytes; --port may help", FAULTY)
    return CLEAN if tally.clean else FAULTY


def _where(packet: CapturePacket) -> str:
    return f"frame {packet.number}" if packet.number else f"end of {packet.session}"


def _print(text: str) -> None:
    """Print a text; names in captures may be any bytes, and outputs of any encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    say(text.encode(encoding, "backslashreplace").decode(encoding))
