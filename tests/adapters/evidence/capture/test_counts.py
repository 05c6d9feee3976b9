"""Counts of frames and types."""

from pathlib import Path

from stablecast.evidence.capture.counts import Tally, count
from stablecast.evidence.capture.decoder import Packet, packets
from stablecast.evidence.capture.layers import Layer
from stablecast.evidence.capture.verdicts import Verdict
from stablecast.transports.wire.lbmc import Message, MessageKind
from tests.support import captures
from tests.support.traffic_capture import FRAMES, all_kinds

LAYER = Layer("LBMC", "DATA", Message(MessageKind.DATA), ("FRAG", "BATCH"))


def packet(verdict: Verdict, number: int, *settles: tuple[int, Verdict]) -> Packet:
    return Packet(number, 0, 0, None, None, None, None, "", (LAYER,), verdict, (), settles)


def test_pieces_are_counted_once_they_are_settled() -> None:
    tally = count([packet(Verdict.PART, 1), packet(Verdict.MALFORMED, 2, (1, Verdict.DECODED))])
    assert tally.packets == 2
    assert (tally.frames[Verdict.PART], tally.frames[Verdict.DECODED], tally.frames[Verdict.MALFORMED]) == (0, 1, 1)
    assert tally.types == {"LBMC DATA": 2, "FRAG": 2, "BATCH": 2}


def test_what_is_left_at_the_end_is_no_frame() -> None:
    tally = count([packet(Verdict.PART, 1), packet(Verdict.INCOMPLETE, 0, (1, Verdict.INCOMPLETE))])
    assert (tally.packets, tally.frames[Verdict.INCOMPLETE]) == (1, 1)


def test_clean_is_what_holds_ours_and_no_fault() -> None:
    assert not Tally().clean
    assert not count([packet(Verdict.OTHER, 1)]).clean
    assert count([packet(Verdict.OTHER, 1), packet(Verdict.DECODED, 2)]).clean
    for verdict in (Verdict.DIFFERENT, Verdict.UNKNOWN, Verdict.INCOMPLETE, Verdict.MALFORMED):
        assert not count([packet(verdict, 1), packet(Verdict.DECODED, 2)]).clean


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
