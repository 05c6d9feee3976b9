"""Counts of frames and types."""

from pathlib import Path

from stablecast.evidence.capture.decoder import CapturePacket, CaptureTally, packets
from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.layers import Layer
from stablecast.transports.wire.lbmc import Message, MessageKind
from tests.support import captures
from tests.support.captures import count
from tests.support.traffic_capture import FRAMES, all_kinds

LAYER = Layer("LBMC", "DATA", Message(MessageKind.DATA), ("FRAG", "BATCH"))


def packet(verdict: FrameVerdict, number: int, *settles: tuple[int, FrameVerdict]) -> CapturePacket:
    return CapturePacket(number, 0, 0, None, None, None, None, "", (LAYER,), verdict, (), settles)


def test_pieces_are_counted_once_they_are_settled() -> None:
    tally = count([packet(FrameVerdict.PART, 1), packet(FrameVerdict.MALFORMED, 2, (1, FrameVerdict.DECODED))])
    assert tally.packets == 2
    assert (
        tally.frames[FrameVerdict.PART],
        tally.frames[FrameVerdict.DECODED],
        tally.frames[FrameVerdict.MALFORMED],
    ) == (0, 1, 1)
    assert tally.types == {"LBMC DATA": 2, "FRAG": 2, "BATCH": 2}


def test_the_rest_at_the_end_is_no_frame() -> None:
    tally = count([packet(FrameVerdict.PART, 1), packet(FrameVerdict.INCOMPLETE, 0, (1, FrameVerdict.INCOMPLETE))])
    assert (tally.packets, tally.frames[FrameVerdict.INCOMPLETE]) == (1, 1)


def test_clean_is_what_holds_ours_and_no_fault() -> None:
    assert not CaptureTally().clean
    assert not count([packet(FrameVerdict.OTHER, 1)]).clean
    assert count([packet(FrameVerdict.OTHER, 1), packet(FrameVerdict.DECODED, 2)]).clean
    for verdict in (FrameVerdict.DIFFERENT, FrameVerdict.UNKNOWN, FrameVerdict.INCOMPLETE, FrameVerdict.MALFORMED):
        assert not count([packet(verdict, 1), packet(FrameVerdict.DECODED, 2)]).clean


def test_the_json_form(tmp_path: Path) -> None:
    path = captures.pcap(tmp_path / "a.pcap", all_kinds().packets)
    found = count(packets(path)).as_json()
    assert {name: found[name] for name in ("packets", "decoded", "malformed")} == {
        "packets": FRAMES,
        "decoded": FRAMES,
        "malformed": 0,
    }
    assert isinstance(found["types"], dict)
    assert found["types"]["LBMC DATA"] == 7
